"""Whole lines, whatever the disk does."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from gpu_dash.record.append import PAGE_BYTES, AppendFile, RowsLost


class FullDisk:
    """``os.write`` of a disk with so many bytes left."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.writes: list[tuple[int, int]] = []

    def __call__(self, file: int, data: bytes) -> int:
        self.writes.append((os.fstat(file).st_size, len(data)))
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = data[: self.room]
        self.room -= len(taken)
        return _real_write(file, taken)


_real_write = os.write


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    disk = FullDisk(10**9)
    monkeypatch.setattr(os, "write", disk)
    return disk


def test_no_write_crosses_a_page_unless_a_single_line_does(tmp_path: Path, disk: FullDisk) -> None:
    chance = random.Random(7)
    file = AppendFile(tmp_path / "a.csv")
    written = b""
    for _ in range(50):
        lines = [b"x" * chance.randint(0, 900) + b"\n" for _ in range(chance.randint(1, 30))]
        lines += [b"y" * chance.choice([10, 5000]) + b"\n"]
        file.append(lines)
        written += b"".join(lines)
    file.close()
    assert (tmp_path / "a.csv").read_bytes() == written
    for offset, length in disk.writes:
        crosses = offset // PAGE_BYTES != (offset + length - 1) // PAGE_BYTES
        assert not crosses or written[offset : offset + length].count(b"\n") == 1
    assert len(disk.writes) < len(written) / PAGE_BYTES * 3


def test_lines_that_fill_a_page_exactly(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "a.csv")
    lines = [b"x" * (PAGE_BYTES // 4 - 1) + b"\n" for _ in range(9)]
    file.append(lines)
    file.append(lines)
    file.close()
    assert (tmp_path / "a.csv").read_bytes() == b"".join(lines) * 2


def test_a_full_disk_costs_whole_lines_and_leaves_no_half(tmp_path: Path, disk: FullDisk) -> None:
    path = tmp_path / "a.csv"
    file = AppendFile(path)
    lines = [f"line {number:04}\n".encode() for number in range(1000)]
    disk.room = 6_005
    with pytest.raises(RowsLost) as lost:
        file.append(lines)
    kept = path.read_bytes().splitlines(keepends=True)
    assert lost.value.count == 1000 - len(kept)
    assert lost.value.reason == os.strerror(errno.ENOSPC)
    assert kept == lines[: len(kept)]
    assert 0 < len(kept) < 1000

    with pytest.raises(RowsLost) as lost:
        file.append([b"still no room\n"])
    assert lost.value.count == 1

    disk.room = 10**6
    file.append([b"room again\n"])
    file.close()
    assert path.read_bytes().splitlines(keepends=True) == [*kept, b"room again\n"]


def test_what_could_not_be_taken_off_is_taken_off_before_the_next_write(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    file = AppendFile(path)
    file.append([b"one\n"])

    def refuse(file: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk.room = 2
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(RowsLost):
            file.append([b"two\n"])
        assert path.read_bytes() == b"one\ntw"
        disk.room = 100
        with pytest.raises(RowsLost):
            file.append([b"three\n"])
        assert path.read_bytes() == b"one\ntw"
    file.append([b"four\n"])
    file.close()
    assert path.read_bytes() == b"one\nfour\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"one\n", b"one\n"),
        (b"one\ntwo", b"one\n"),
        (b"no end", b""),
        (b"one\n" + b"x" * 20_000, b"one\n"),
        (b"x" * 20_000, b""),
        (b"x" * (PAGE_BYTES - 1) + b"\n" + b"y" * PAGE_BYTES, b"x" * (PAGE_BYTES - 1) + b"\n"),
    ],
)
def test_a_file_is_continued_after_its_last_whole_line(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(before)
    file = AppendFile(path)
    assert file.is_empty is (after == b"")
    file.append([b"new\n"])
    file.close()
    assert path.read_bytes() == after + b"new\n"


def test_a_new_file_is_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    AppendFile(tmp_path / "a.csv").close()
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(OSError, match="symbolic"):
        AppendFile(tmp_path / "link.csv")
