"""One fault, told once, whoever says it."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.hardware_events import HardwareEvents
from gpu_dash.gpu.kernel_log import read_kernel_log
from gpu_dash.model.events import Finding
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.log import Severity

XID_79 = "NVRM: Xid (PCI:0000:9b:00): 79, pid=12, name=python3, GPU has fallen off the bus."


@pytest.fixture
def told() -> list[Finding]:
    return []


@pytest.fixture
def events(told: list[Finding]) -> HardwareEvents:
    events = HardwareEvents(told.append)
    events.know(
        [
            GpuInfo(gpu=0, name="a", pci_bus_id="0000:1b:00.0"),
            GpuInfo(gpu=3, name="b", pci_bus_id="0000:9b:00.0"),
        ]
    )
    return events


def hear(events: HardwareEvents, at: float, line: str) -> None:
    for event in read_kernel_log([line]):
        events.kernel(at, event)


def test_the_kernel_names_the_card_by_its_address(
    events: HardwareEvents, told: list[Finding]
) -> None:
    hear(events, 5.0, XID_79)
    (finding,) = told
    assert (finding.kind, finding.source, finding.subject) == ("xid", "kernel", "gpu:3")
    assert finding.severity is Severity.CRITICAL
    assert finding.message == "XID 79: GPU has fallen off the bus (python3)"
    assert finding.checks == (
        "at once: restart the host",
        "then: contact support if it returns",
    )


def test_what_nvml_and_the_kernel_say_comes_once(
    events: HardwareEvents, told: list[Finding]
) -> None:
    hear(events, 5.0, XID_79)
    events.xid(5.2, 3, 79)
    hear(events, 5.3, "NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.")
    assert len(told) == 1
    events.xid(5.4, 0, 79)  # another card
    events.xid(11.0, 3, 79)  # another time
    assert [(finding.subject, finding.source) for finding in told[1:]] == [
        ("gpu:0", "gpu"),
        ("gpu:3", "gpu"),
    ]


def test_a_clean_up_is_no_cause(events: HardwareEvents, told: list[Finding]) -> None:
    hear(events, 1.0, "NVRM: Xid (PCI:0000:9b:00): 45, pid=1, name=p, caused by previous Xid 149")
    assert told[0].message.endswith(", caused by XID 149 (p)")
    assert not told[0].root


@pytest.mark.parametrize(
    ("line", "kind", "subject"),
    [
        ("amdgpu 0000:9b:00.0: amdgpu: GPU reset begin!", "gpu_reset_amd", "gpu:3"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 42",
         "gpu_ecc_nvlink", "0000:c4:00.0"),
        ("amdgpu 0000:1b:00.0: WARN: GPU thermal throttling temperature reached, expect "
         "performance decrease. HBM.", "thermal", "gpu:0"),
    ],
)  # fmt: skip
def test_other_events(
    events: HardwareEvents, told: list[Finding], line: str, kind: str, subject: str
) -> None:
    hear(events, 1.0, line)
    assert (told[0].kind, told[0].subject, told[0].source) == (kind, subject, "kernel")
