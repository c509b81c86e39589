"""Listens to the kernel's log for GPU events, where this account may read it.

``/dev/kmsg`` first, then the journal. Both give only what is new: an old XID of last week is no
news of this session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.kernel_log import KernelLogReader
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.text import one_line

KMSG = Path("/dev/kmsg")
JOURNAL = ("journalctl", "--dmesg", "--output=cat", "--quiet")
_RECORD_BYTES = 8192
JOURNAL_PROOF_S = 2.0
"""How long the journal may take to show its newest kernel message."""


@dataclass(frozen=True)
class Heard:
    """Where the kernel's log is heard."""

    live: tuple[str, ...]
    """The device, ``journal``, or nothing."""
    missing: tuple[str, ...] = ()
    """What was tried before, each with why it cannot be read."""


class KernelWatch:
    """Reads the kernel's log in a thread that ends with the process.

    Args:
        on_event: called from that thread with the moment and the event.
        clock: gives the moments.
        kmsg: the kernel's log device.
    """

    def __init__(
        self,
        on_event: Callable[[float, KernelEvent], None],
        clock: Clock | None = None,
        kmsg: Path = KMSG,
    ) -> None:
        self._on_event = on_event
        self._clock = clock or SystemClock()
        self._kmsg = kmsg

    def start(self) -> Heard:
        """Begin to listen, and say where."""
        device = self._open_device()
        if isinstance(device, int):
            self._in_thread(lambda: self._read(_records(device)))
            return Heard((str(self._kmsg),))
        problem = _journal_problem()
        if problem:
            return Heard((), (device, problem))
        self._in_thread(lambda: self._read(_journal_lines()))
        return Heard(("journal",), (device,))

    def look(self) -> Heard:
        """Say where it could be listened, without doing so."""
        device = self._open_device()
        if isinstance(device, int):
            os.close(device)
            return Heard((str(self._kmsg),))
        problem = _journal_problem()
        return Heard((), (device, problem)) if problem else Heard(("journal",), (device,))

    def _open_device(self) -> int | str:
        """The kernel's log at its end, or why it cannot be read."""
        try:
            device = os.open(self._kmsg, os.O_RDONLY)
        except OSError as error:
            hint = "; root reads it" if isinstance(error, PermissionError) else ""
            return f"{self._kmsg}: {error.strerror}{hint}"
        try:
            os.lseek(device, 0, os.SEEK_END)
        except OSError as error:
            os.close(device)
            return f"{self._kmsg}: {error.strerror}"
        return device

    def _in_thread(self, listen: Callable[[], None]) -> None:
        threading.Thread(target=listen, name="kernel log", daemon=True).start()

    def _read(self, lines: Iterable[str]) -> None:
        reader = KernelLogReader()
        for line in lines:
            for event in reader.read(line):
                self._on_event(self._clock.monotonic(), event)


def _records(device: int) -> Iterable[str]:
    """Messages of ``/dev/kmsg``: one a read, ``priority,sequence,time,flags;message``."""
    while True:
        try:
            record = os.read(device, _RECORD_BYTES)
        except BrokenPipeError:
            continue  # overwritten before it was read; the next read goes on behind it
        except OSError:
            return
        if not record:
            return
        _, _, message = record.decode("utf-8", "replace").partition(";")
        yield message.partition("\n")[0]


def _journal_lines() -> Iterable[str]:
    """New kernel messages of the journal.

    Its command ends with this process, however that ends, where util-linux is installed; else at
    the next message, which nobody reads any more.
    """
    ends_with_us = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
    process = subprocess.Popen(
        (*ends_with_us, *JOURNAL, "--follow", "--lines=0"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    with process:
        yield from process.stdout or ()


def _journal_problem() -> str:
    """Why the journal's kernel messages cannot be read; empty if they can.

    A journal that is empty, or closed to this account, is followed without a word, so the proof is
    its newest kernel message: there is one since the boot.
    """
    if shutil.which(JOURNAL[0]) is None:
        return f"journal: no {JOURNAL[0]} here"
    try:
        ended = subprocess.run(
            (*JOURNAL, "--lines=1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=JOURNAL_PROOF_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"journal: {one_line(str(error))}"
    if ended.stdout.strip():
        return ""
    lines = ended.stderr.strip().splitlines()
    why = one_line(lines[-1]) if lines else "it shows this account no message of the kernel"
    return f"journal: {why}; members of the group systemd-journal or adm read it"
