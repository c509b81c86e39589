"""XIDs in words."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.xid import xid_finding
from gpu_dash.model.log import Severity


@pytest.mark.parametrize(
    ("code", "severity", "meaning", "first_check"),
    [
        (79, Severity.CRITICAL, "fallen off the bus", "power cables"),
        (31, Severity.WARNING, "page fault", "CUDA error"),
        (45, Severity.INFO, "clean-up", "the XID before it"),
        (48, Severity.CRITICAL, "double-bit ECC", "reset"),
        (74, Severity.ERROR, "NVLink", "nvlink -e"),
        (149, Severity.ERROR, "NVLink 5", "fabric manager"),
        (4711, Severity.ERROR, "no meaning known", "catalogue"),
    ],
)
def test_a_code_has_a_meaning_and_a_first_check(
    code: int, severity: Severity, meaning: str, first_check: str
) -> None:
    finding = xid_finding(5.0, 3, code)
    assert (finding.kind, finding.source, finding.subject) == ("xid", "gpu", "gpu:3")
    assert finding.severity is severity
    assert finding.message.startswith(f"XID {code}: ")
    assert meaning in finding.message
    assert first_check in finding.first_check


def test_a_card_that_the_driver_does_not_name_has_no_subject() -> None:
    assert xid_finding(5.0, None, 79).subject == ""
