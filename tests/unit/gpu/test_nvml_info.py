"""PCI addresses as the kernel writes them."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.nvml_info import kernel_bus_id


@pytest.mark.parametrize(
    ("nvml", "kernel"),
    [
        ("00000000:9B:00.0", "0000:9b:00.0"),
        (b"00000008:01:00.0", "0008:01:00.0"),
        ("0000:3B:00.0", "0000:3b:00.0"),
        ("00010000:01:00.0", "00010000:01:00.0"),
    ],
)
def test_bus_ids(nvml: str | bytes, kernel: str) -> None:
    assert kernel_bus_id(nvml) == kernel
