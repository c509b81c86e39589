"""From what a process is shown to the cards of the host."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.identity import card_of_rank, visible_gpus
from gpu_dash.model.gpu import GpuInfo, GpuVendor

NVIDIA = tuple(
    GpuInfo(
        gpu=gpu,
        name="H200",
        uuid=f"GPU-{gpu}aaaaaaa-0000-0000-0000-000000000000",
        pci_bus_id=f"0000:{bus}:00.0",
        mig_uuids=("MIG-11111111-a", "MIG-22222222-b") if gpu == 2 else (),
    )
    for gpu, bus in enumerate(("1b", "3b", "5c", "04"))
)
AMD = tuple(
    GpuInfo(gpu=gpu, name="MI300X", uuid=f"GPU-{gpu:016x}", vendor=GpuVendor.AMD)
    for gpu in range(4)
)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "2, 0"}, (2, 0)),
        ({"CUDA_VISIBLE_DEVICES": "1,9,0"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-3aaa,GPU-0aaaaaaa"}, (3, 0)),
        ({"CUDA_VISIBLE_DEVICES": "gpu-3AAA"}, (3,)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-"}, ()),  # more than one card
        ({"CUDA_VISIBLE_DEVICES": "GPU-ffff,0"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "MIG-11111111-a,MIG-2222"}, (2, 2)),
        ({"CUDA_VISIBLE_DEVICES": "MIG-GPU-1aaaaaaa-0000/1/0"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "all"}, ()),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1"}, (3, 0)),
        ({"HIP_VISIBLE_DEVICES": "3"}, (0, 1, 2, 3)),
    ],
)
def test_nvidia(variables: dict[str, str], expected: tuple[int, ...]) -> None:
    assert visible_gpus(variables, NVIDIA) == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"HIP_VISIBLE_DEVICES": "3,1"}, (3, 1)),
        ({"CUDA_VISIBLE_DEVICES": "2"}, (2,)),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "2"}, (0,)),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, (3,)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000000001"}, (1,)),
    ],
)
def test_amd(variables: dict[str, str], expected: tuple[int, ...]) -> None:
    assert visible_gpus(variables, AMD) == expected


def test_a_rank_is_a_card_of_the_host() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "3,1"}
    assert card_of_rank(1, environment, NVIDIA) == 1
    assert card_of_rank(2, environment, NVIDIA) is None
