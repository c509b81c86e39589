"""Lines of kernel logs beyond the real cases, and lines that look alike and say nothing."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.kernel_log import read_kernel_log
from gpu_dash.model.log import Severity

XID = "NVRM: Xid (PCI:0000:c1:00"
AMD = "amdgpu 0000:83:00.0: amdgpu:"


@pytest.mark.parametrize(
    ("line", "kind", "code", "subject", "severity"),
    [
        (f"{XID} GPU-I:05): 94, pid=1, name=a, Contained: SM", "xid", 94,
         "contained memory error", Severity.ERROR),
        (f"{XID}): 119, pid=7, name=b, Timeout after 6s of waiting for RPC response", "xid", 119,
         "GSP RPC timeout", Severity.CRITICAL),
        (f"{XID}): 149, NETIR_LINK_EVT  Nonfatal  XC0 i0 Link 01", "xid", 149,
         "NVLINK NETIR_LINK_EVT", Severity.WARNING),
        (f"3,77,5680,-;{XID}): 4711, pid='<unknown>', name=<unknown>, Strange words", "xid", 4711,
         "Strange words", Severity.ERROR),
        ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "fallen_off_bus", None,
         "fallen off the bus", Severity.CRITICAL),
        ("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 42 LTSSM Fault Up", "sxid",
         20034, "LTSSM Fault Up", Severity.CRITICAL),
        ("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20009, Non-fatal, Link 56 RX Short Error Rate",
         "sxid", 20009, "RX Short Error Rate", Severity.ERROR),
        (f"{AMD} GPU reset(2) succeeded!", "reset", None, "GPU reset succeeded", Severity.WARNING),
        (f"{AMD} GPU reset end with ret = -110", "reset", None, "GPU reset failed",
         Severity.CRITICAL),
        (f"{AMD} WARN: GPU is throttled, expect performance decrease. SOCKET THERMAL.", "throttle",
         None, "SOCKET THERMAL", Severity.WARNING),
        (f"{AMD} ERROR: GPU over temperature range(SW CTF) detected!", "over_temperature", None,
         "critical temperature fault", Severity.CRITICAL),
        (f"{AMD} ERROR: GPU HW Critical Temperature Fault(aka CTF) detected!", "over_temperature",
         None, "critical temperature fault", Severity.CRITICAL),
        (f"{AMD} ERROR: System is going to shutdown due to GPU SW CTF!", "over_temperature", None,
         "critical temperature fault", Severity.CRITICAL),
        (f"{AMD} device lost from bus!", "fallen_off_bus", None, "device lost from bus",
         Severity.CRITICAL),
        (f"{AMD} Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!", "ras", None,
         "uncorrectable athub", Severity.CRITICAL),
        (f"{AMD} [mmhub0] no-retry page fault (src_id:0 ring:24 vmid:3)", "page_fault", None,
         "mmhub", Severity.ERROR),
    ],
)  # fmt: skip
def test_an_event(line: str, kind: str, code: int | None, subject: str, severity: Severity) -> None:
    (event,) = read_kernel_log([line])
    assert (event.kind, event.xid, event.subject) == (kind, code, subject)
    assert event.severity is severity
    assert event.pci_bus_id.endswith(":00.0")
    assert event.immediate_action


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
        "NVRM: GPU at PCI:0000:3b:00: GPU-00000000-0000-0000-0000-000000000000",
        "amdgpu 0000:83:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0",
        "amdgpu 0000:83:00.0: amdgpu: SMU is initialized successfully!",
        "vllm: worker saw Xid 79 in the log",
        "usb 1-1: reset high-speed USB device number 2",
    ],
)
def test_no_event(line: str) -> None:
    assert list(read_kernel_log([line])) == []


def test_control_sequences_do_not_pass() -> None:
    (event,) = read_kernel_log([f"{XID}): 31, name=\x1b[31mred\x07, x"])
    assert event.process == "red"
    assert event.message.isprintable()


@pytest.mark.parametrize("quote", ["", "'"])
def test_the_process_may_stand_in_quotes(quote: str) -> None:
    line = f"{XID}): 31, pid={quote}77{quote}, name={quote}python3{quote}, Ch 00000008"
    (event,) = read_kernel_log([line])
    assert (event.pid, event.process) == (77, "python3")
