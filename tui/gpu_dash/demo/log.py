"""The log as vLLM writes it to a pipe: its own records on stdout, tracebacks and bars on stderr.

A record is ``(Name pid=N) LEVEL MM-DD HH:MM:SS [file.py:line] message``; the further lines of one
record are joined with ``\\r\\n`` and carry the prefix again. Lines of uvicorn, tqdm, torch and the
kernel have no prefix.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Process:
    """Who writes a record."""

    name: str
    rank: int | None = None
    """Of a worker."""


API_SERVER = Process("APIServer")
ENGINE_CORE = Process("EngineCore")


def worker(rank: int, ranks: int) -> Process:
    """A worker, by the name that it has once its parallel group exists."""
    return Process(f"Worker_TP{rank}" if ranks > 1 else "Worker", rank)


class ServerLog:
    """Writes the lines of all processes of one server.

    A reader that went away costs the lines and nothing else.
    """

    def __init__(self, api_server_pid: int) -> None:
        self._api_server_pid = api_server_pid
        self._engine_core_pid = api_server_pid

    def engine_core_started(self, pid: int) -> None:
        """From now on the engine's lines carry this process id."""
        self._engine_core_pid = pid

    def record(self, process: Process, level: str, source: str, *lines: str) -> None:
        """One record of vLLM's own; several ``lines`` are one message."""
        self.raw(self.format(process, level, source, *lines))

    def format(self, process: Process, level: str, source: str, *lines: str) -> str:
        """A record as text, without the line end."""
        stamp = time.strftime("%m-%d %H:%M:%S")
        prefix = f"({process.name} pid={self.pid_of(process)}) {level} {stamp} [{source}] "
        return "\r\n".join(prefix + line for line in lines)

    def access(self, peer: str, method: str, path: str, status: int) -> None:
        """Uvicorn's line about an answer."""
        phrase = HTTPStatus(status).phrase
        self.raw(f'INFO:     {peer} - "{method} {path} HTTP/1.1" {status} {phrase}')

    def raw(self, text: str) -> None:
        """Lines on stdout that have no prefix or have theirs already."""
        _write(sys.stdout.buffer, text + "\n")

    def raw_lines(self, lines: Iterable[str]) -> None:
        """Many such lines in one go."""
        _write(sys.stdout.buffer, "".join(f"{line}\n" for line in lines))

    def raw_error(self, text: str) -> None:
        """Lines on stderr."""
        _write(sys.stderr.buffer, text + "\n")

    def progress(self, text: str, *, done: bool) -> None:
        """A progress bar on stderr, which overwrites itself until it is done."""
        _write(sys.stderr.buffer, f"\r{text}" + ("\n" if done else ""))

    def pid_of(self, process: Process) -> int:
        """The process id in the prefix.

        The stand-in has no worker processes; their ids follow the engine's, as they often do.
        """
        if process is API_SERVER:
            return self._api_server_pid
        if process.rank is None:
            return self._engine_core_pid
        return self._engine_core_pid + 1 + process.rank


def _write(stream: BinaryIO, text: str) -> None:
    try:
        stream.write(text.encode())
        stream.flush()
    except BrokenPipeError:
        # What is left in the buffer must go somewhere, or Python fails at its exit.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except OSError:
        pass  # a full disk costs the lines, as with vLLM's own logging
