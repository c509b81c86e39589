"""What a server that has ended had to say: its cause, or what is known without one."""

from __future__ import annotations

import re
import signal

from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity

_NOTHING = re.compile(
    r"\b(?:INFO|DEBUG|WARNING)\b|\d%(?:\||\s+Completed)|resource_tracker|^\s*warnings\.warn"
)
"""Lines that say nothing of why a server ended: progress, what it did well, what it warned of."""
_ASKED = re.compile(r"\[shutdown\]|Shutting down|Finished server process")
"""What a server says that was asked to stop."""
_KILLED = "something killed it; `dmesg` says whether memory ran out"
_BUS_ERROR = "a bus error: /dev/shm is full or too small (docker --shm-size, --ipc=host)"
_ASKED_BY_OTHERS = "it was asked to stop, but not by gpu-dash"
_WHY = {-signal.SIGKILL: _KILLED, -signal.SIGBUS: _BUS_ERROR}
FIRST_ERROR = "the first error of the log, above the follow-on ones"
NO_ERROR = "nothing in the log says why: who sent a signal, the kernel log then (OOM kill, XID)"


class LastWords:
    """Takes the lines and findings of a server's log until its end."""

    def __init__(self) -> None:
        self._causes: dict[int | None, str] = {}
        self._follow_on = ""
        self._last_line = ""
        self._was_asked = False

    def take_line(self, text: str) -> None:
        """A line of the log."""
        self._was_asked = self._was_asked or _ASKED.search(text) is not None
        if text.strip() and not _NOTHING.search(text):
            self._last_line = text.strip()

    def take_finding(self, finding: Finding) -> None:
        """What was found in the log: the first error that did not follow from another is the
        cause of a failure. A finding of the same line says more of the one before."""
        is_error = finding.severity in (Severity.ERROR, Severity.CRITICAL)
        if finding.root and is_error:
            self._causes.setdefault(finding.line, finding.message)
            return
        self._causes.pop(finding.line, None)
        if is_error and not self._follow_on:
            self._follow_on = finding.message

    def give_up(self, reason: str) -> None:
        """We end it ourselves, and this is why, unless its log said it before."""
        self._causes.setdefault(None, reason)

    def of_end(self, exit_code: int | None) -> tuple[str, str]:
        """Why it ended, as far as that is known, and what to look at first."""
        ending = describe_exit(exit_code)
        cause = next(iter(self._causes.values()), "")
        if cause:
            return f"{ending}: {cause}", FIRST_ERROR
        said = self._follow_on or _WHY.get(exit_code or 0, "")
        if not said:
            said = _ASKED_BY_OTHERS if self._was_asked and exit_code == 0 else self._last_line
        return (f"{ending}: {said}" if said else ending), NO_ERROR


def describe_exit(code: int | None) -> str:
    """An exit code in words: ``ended by signal 9 (SIGKILL)``, ``exit code 1``."""
    if code is None:
        return "ended; its exit code is not known"
    if code < 0:
        try:
            name = f" ({signal.Signals(-code).name})"
        except ValueError:
            name = ""
        return f"ended by signal {-code}{name}"
    return f"exit code {code}"
