"""A stub gateway: OpenAI-compatible, with one fault of those that real gateways have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

KEY = "test-key-0123456789"


@dataclass
class Gateway:
    """What the gateway does; change the fields at any time."""

    fault: str = ""
    """``no_choices``, ``error_in_200``, ``string_error``, ``no_stream``, ``no_done``,
    ``no_usage``, ``cut_tokens``, ``cut_prompt``, ``short_context``, ``no_models``,
    ``echo_key``, ``server_error``, ``endless`` or ``rate_limited``."""
    prefix: str = "/v1"
    """Path of the API."""
    key: str | None = None
    models: tuple[str, ...] = ("served-model",)
    context: int | None = 2048
    url: str = ""
    """Scheme, host and port."""
    paths: list[str] = field(default_factory=list)


@contextmanager
def stub_gateway(**fields: Any) -> Iterator[Gateway]:
    """A gateway on a free port of the loopback, until the block ends."""
    gateway = Gateway(**fields)
    handler = type("Handler", (_Handler,), {"gateway": gateway})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    gateway.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield gateway
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    gateway: ClassVar[Gateway]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        gateway = self.gateway
        gateway.paths.append(self.path)
        if self.path != f"{gateway.prefix}/models" or gateway.fault == "no_models":
            self._json(404, {"detail": "Not Found"})
        elif not self._is_allowed():
            self._refuse()
        else:
            limits = {} if gateway.context is None else {"max_model_len": gateway.context}
            entries = [{"id": name, "object": "model", **limits} for name in gateway.models]
            self._json(200, {"object": "list", "data": entries})

    def do_POST(self) -> None:
        gateway = self.gateway
        gateway.paths.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != f"{gateway.prefix}/chat/completions":
            self._json(404, {"detail": "Not Found"})
        elif not self._is_allowed():
            self._refuse()
        elif body["model"] not in gateway.models:
            message = f"The model `{body['model']}` does not exist."
            self._json(404, {"error": {"message": message, "code": 404}})
        else:
            self._complete(body)

    def _is_allowed(self) -> bool:
        key = self.gateway.key
        return key is None or self.headers.get("authorization") == f"Bearer {key}"

    def _refuse(self) -> None:
        sent = self.headers.get("authorization", "")
        if self.gateway.fault == "string_error":
            self._json(401, {"error": "Unauthorized"})
        elif self.gateway.fault == "echo_key":
            self._json(401, {"error": {"message": f"bad credentials: {sent}"}})
        else:
            self._json(401, {"error": {"message": "Invalid API key", "code": 401}})

    def _complete(self, body: dict[str, Any]) -> None:
        fault = self.gateway.fault
        prompt = len(body["messages"][0]["content"].split())
        if fault == "rate_limited":
            return self._json(429, {"error": {"message": "Too many requests", "code": 429}})
        if fault == "endless":
            return self._endless()
        if fault == "server_error":
            return self._json(500, {"error": "upstream broke"})
        if fault == "short_context" and prompt > 500:
            return self._json(400, {"error": {"message": "This model's context is 500 tokens"}})
        if fault == "no_choices":
            return self._json(200, {"object": "chat.completion", "usage": {}})
        if fault == "error_in_200":
            return self._json(200, {"error": {"message": "upstream is overloaded"}})
        tokens = min(8, body["max_tokens"]) if fault == "cut_tokens" else body["max_tokens"]
        read = min(prompt, 300) if fault == "cut_prompt" else prompt
        usage = {"prompt_tokens": read, "completion_tokens": tokens}
        if body.get("stream") and fault != "no_stream":
            return self._stream(tokens, usage)
        choice = {"index": 0, "message": {"content": "1 2"}, "finish_reason": "length"}
        return self._json(200, {"choices": [choice], "usage": usage})

    def _stream(self, tokens: int, usage: dict[str, int]) -> None:
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": "1 "}, "finish_reason": None}]}
        ] * tokens
        if self.gateway.fault != "no_usage":
            events.append({"choices": [], "usage": usage})
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        if self.gateway.fault != "no_done":
            text += "data: [DONE]\n\n"
        self._send(200, "text/event-stream", text.encode())

    def _endless(self) -> None:
        """An answer that never ends, as long as somebody reads it."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" " * 65536)

    def _json(self, status: int, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
