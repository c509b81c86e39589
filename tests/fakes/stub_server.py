"""The demo's stand-in for vLLM as a child process of a test."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

import psutil

WAIT_S = 15.0
READY = "Application startup complete."
_URL = re.compile(r"Starting vLLM server on http://127\.0\.0\.1:(\d+)")


class StubServer:
    """A running stand-in; leaving the ``with`` block ends whatever is left of its session.

    Args:
        flags: flags after ``serve MODEL``; without ``--port`` the system chooses one.
        environment: variables on top of the test's own.
    """

    model = "simulated-32b"

    def __init__(self, *flags: str, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "gpu_dash.demo", "serve", self.model]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--sim-startup", "0", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> StubServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def port(self) -> int:
        """The port it listens on, from its log."""
        match = _URL.search(self.wait_for_line("Starting vLLM server on"))
        assert match is not None
        return int(match[1])

    @property
    def text(self) -> str:
        """The log so far."""
        return "\n".join(self.lines)

    def wait_until_ready(self) -> StubServer:
        """Wait for the line that says so."""
        self.wait_for_line(READY)
        return self

    def wait_for_line(self, part: str) -> str:
        """The first line with this text, now or later."""
        deadline = time.monotonic() + WAIT_S
        seen = 0
        with self._changed:
            while True:
                while seen < len(self.lines):
                    if part in self.lines[seen]:
                        return self.lines[seen]
                    seen += 1
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"no line with {part!r} in:\n{self.text}")
                self._changed.wait(left)

    def session(self) -> list[psutil.Process]:
        """The processes of its session that still run."""
        found = []
        for process in psutil.process_iter(["status"]):
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                ours = os.getsid(process.pid) == self.process.pid
                if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """One request; the answer's status and its JSON, or its bytes where it is none."""
        with self.connection() as connection:
            status, raw = exchange(connection, method, path, body, headers)
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        """A connection that can be used several times."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def stream(self, path: str = "/v1/completions", **fields: object) -> Iterator[EventStream]:
        """An open stream of a generation."""
        with self.connection() as connection:
            connection.request(
                "POST",
                path,
                json.dumps({"prompt": [1] * 8, "stream": True, **fields}),
                {"content-type": "application/json"},
            )
            response = connection.getresponse()
            try:
                yield EventStream(response, connection.sock)
            finally:
                response.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal to the server alone; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            with self._changed:
                self.lines.append(raw.decode(errors="replace").rstrip("\r\n"))
                self._changed.notify_all()


class EventStream:
    """Server-sent events of one response."""

    def __init__(self, response: http.client.HTTPResponse, connection: socket.socket) -> None:
        self.status = response.status
        self.content_type = response.headers["content-type"]
        self._response = response
        self._connection = connection

    def __iter__(self) -> Iterator[Any]:
        """The events' JSON, and ``"[DONE]"`` as text."""
        for line in self._response:
            if line.startswith(b"data: "):
                text = line[6:].decode().strip()
                yield text if text == "[DONE]" else json.loads(text)

    def is_silent_for(self, seconds: float) -> bool:
        """No event arrives in this time; the stream cannot be read afterwards."""
        self._connection.settimeout(seconds)
        try:
            return self._response.readline() == b""
        except TimeoutError:
            return True


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """One request on an open connection; a body that is no bytes is sent as JSON."""
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    kind = {} if body is None else {"content-type": "application/json"}
    connection.request(method, path, raw, {**kind, **(headers or {})})
    response = connection.getresponse()
    return response.status, response.read()
