"""Which kernel log is listened to, and what comes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.kernel_watch import Heard, KernelWatch

LINE = "NVRM: Xid (PCI:0000:9b:00): 48, pid=1"
WAIT_S = 10.0


class Listener:
    """Collects what a watch tells."""

    def __init__(self) -> None:
        self.events: list[KernelEvent] = []
        self.arrived = threading.Event()

    def __call__(self, at: float, event: KernelEvent) -> None:
        self.events.append(event)
        self.arrived.set()


def only_programs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    programs = folder / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    return programs


def test_nothing_to_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_programs(monkeypatch, tmp_path)
    absent = tmp_path / "absent"
    watch = KernelWatch(Listener(), kmsg=absent)
    missing = (f"{absent}: No such file or directory", "journal: no journalctl here")
    assert watch.start() == watch.look() == Heard((), missing)


def test_a_device_that_cannot_be_sought_is_not_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_programs(monkeypatch, tmp_path)
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    try:
        heard = KernelWatch(Listener(), kmsg=pipe).start()
        assert (heard.live, heard.missing[0]) == ((), f"{pipe}: Illegal seek")
    finally:
        os.close(writer)


def test_the_journal_is_the_second_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = tmp_path / "go on"
    os.mkfifo(go_on)
    journal = only_programs(monkeypatch, tmp_path) / "journalctl"
    follow = f'read go < "{go_on}"; echo "{LINE}"'
    journal.write_text(f'#!/bin/sh\ncase "$*" in *follow*) {follow};; *) echo booted;; esac\n')
    journal.chmod(0o755)
    heard = Listener()
    assert KernelWatch(heard, kmsg=tmp_path / "absent").start().live == ("journal",)
    go_on.write_text("\n")
    assert heard.arrived.wait(WAIT_S)
    (event,) = heard.events
    assert (event.xid, event.pci_bus_id) == (48, "0000:9b:00.0")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'No journal files were opened' >&2; exit 1", "No journal files were opened; mem"),
        ("exit 0", "it shows this account no message of the kernel; members of"),
    ],
)
def test_a_journal_that_shows_nothing_is_not_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    journal = only_programs(monkeypatch, tmp_path) / "journalctl"
    journal.write_text(f"#!/bin/sh\n{script}\n")
    journal.chmod(0o755)
    heard = KernelWatch(Listener(), kmsg=tmp_path / "absent").start()
    assert heard.live == ()
    assert heard.missing[1].startswith(f"journal: {words}")


_WATCHER = """
import sys, time
from pathlib import Path
from gpu_dash.gpu.kernel_watch import KernelWatch
print(KernelWatch(print, kmsg=Path("/no/such/device")).start().live, flush=True)
time.sleep(60)
"""


def test_the_journals_command_ends_with_a_watcher_that_is_killed(tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (Debian: util-linux)")
    pid_file = tmp_path / "pid"
    journal = tmp_path / "journalctl"
    follow = f'echo $$ > "{pid_file}.new"; mv "{pid_file}.new" "{pid_file}"; exec sleep 60'
    journal.write_text(f'#!/bin/sh\ncase "$*" in *follow*) {follow};; *) echo booted;; esac\n')
    journal.chmod(0o755)
    watcher = subprocess.Popen(
        [sys.executable, "-c", _WATCHER],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + WAIT_S
        while not pid_file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        follower = psutil.Process(int(pid_file.read_text()))
        assert follower.is_running()
    finally:
        watcher.kill()
        watcher.communicate()
    follower.wait(WAIT_S)
