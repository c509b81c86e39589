"""Listens to the kernel's log for GPU events, where this account may read it.

``/dev/kmsg`` first, then the journal. Both give only what is new: an old XID of last week is no
news of this session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.kernel_log import KernelLogReader
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.text import one_line

KMSG = Path("/dev/kmsg")
JOURNAL = ("journalctl", "--dmesg", "--follow", "--lines=0", "--output=cat", "--quiet")
_RECORD_BYTES = 8192
JOURNAL_PROOF_S = 0.3
"""A journal that this account may not read makes the command end at once."""


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
        journal = _open_journal(JOURNAL)
        if not isinstance(journal, str):
            self._in_thread(lambda: self._read(_lines_of(journal)))
            return Heard(("journal",), (device,))
        return Heard((), (device, journal))

    def look(self) -> Heard:
        """Say where it could be listened, without doing so."""
        device = self._open_device()
        if isinstance(device, int):
            os.close(device)
            return Heard((str(self._kmsg),))
        journal = _open_journal(JOURNAL)
        if not isinstance(journal, str):
            _end(journal)
            return Heard(("journal",), (device,))
        return Heard((), (device, journal))

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


def _lines_of(process: subprocess.Popen[str]) -> Iterable[str]:
    """What a command writes until it ends. The journal's ends when nobody reads it any more."""
    with process:
        yield from process.stdout or ()


def _open_journal(command: Sequence[str]) -> subprocess.Popen[str] | str:
    """The journal's kernel messages, or why this account has none."""
    if shutil.which(command[0]) is None:
        return f"journal: no {command[0]} here"
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        process.wait(JOURNAL_PROOF_S)
    except subprocess.TimeoutExpired:
        return process
    _, words = process.communicate()
    lines = words.strip().splitlines()
    why = one_line(lines[-1]) if lines else "it gives no kernel messages to this account"
    return f"journal: {why}; members of the group systemd-journal or adm read it"


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
