"""How tokens become bytes: server-sent events for a stream, one object for the rest."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from gpu_dash.demo.engine import Job
from gpu_dash.demo.http_server import Response
from gpu_dash.demo.protocol import Generation, error_body

_WORDS = (
    " the queue grows until a card runs hot and then every layer waits for its slowest neighbour"
    " so the answer you read here came from no model at all but from a clock and a thermometer"
)
_TOKENS = tuple(f" {word}" for word in _WORDS.split())
_FINGERPRINT = "gpu-dash-simulated"
_DONE = b"data: [DONE]\n\n"
_PLACE = "\0"
"""Stands in a chunk where the token's text goes; JSON writes it as ``\\u0000``."""
_serial = itertools.count(1)


def token_text(position: int) -> str:
    """The text of an output token; the same for every request."""
    return _TOKENS[position % len(_TOKENS)]


class StreamReply:
    """Listens to a job and writes each token as an event.

    The chunk around the text is the same for all tokens but the last, so it is written as JSON
    once.
    """

    def __init__(self, generation: Generation, response: Response) -> None:
        self._generation = generation
        self._response = response
        self._head = _Head(generation, chunk=True)
        chunk = _event(self._head.chunk(self._choice(_PLACE, None)))
        self._before, _, self._after = chunk.rpartition(rb"\u0000")
        response.start_stream("text/event-stream; charset=utf-8")

    def token(self, job: Job) -> None:
        text = token_text(job.generated - 1)
        data = self._role(job) if job.generated == 1 else b""
        if job.finish_reason is not None:
            self._response.end_stream(data + self._last(job, text))
        elif self._generation.usage_in_every_chunk:
            data += self._event(self._choice(text, None), job)
            self._response.write(data)
        else:
            self._response.write(data + self._before + text.encode() + self._after)

    def aborted(self, job: Job) -> None:
        self._response.end_stream(self._last(job, ""))

    def failed(self, job: Job, message: str) -> None:
        error = error_body(HTTPStatus.INTERNAL_SERVER_ERROR, message, "InternalServerError")
        self._response.end_stream(b"data: " + error + b"\n\n" + _DONE)

    def _choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        place = {"delta": {"content": text}} if self._generation.chat else {"text": text}
        end = {"finish_reason": finish_reason, "stop_reason": None, "token_ids": None}
        return {"index": 0, **place, "logprobs": None, **end}

    def _role(self, job: Job) -> bytes:
        if not self._generation.chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return _event(self._head.chunk(choice))

    def _event(self, choice: Mapping[str, object], job: Job) -> bytes:
        return _event({**self._head.chunk(choice), "usage": _usage(job)})

    def _last(self, job: Job, text: str) -> bytes:
        choice = self._choice(text, job.finish_reason)
        if self._generation.usage_in_every_chunk:
            data = self._event(choice, job)
        else:
            data = _event(self._head.chunk(choice))
        if self._generation.include_usage:
            data += _event({**self._head.chunk(), "usage": _usage(job)})
        return data + _DONE


class WholeReply:
    """Listens to a job and answers when it has ended."""

    def __init__(self, generation: Generation, response: Response) -> None:
        self._generation = generation
        self._response = response
        self._head = _Head(generation, chunk=False)

    def token(self, job: Job) -> None:
        if job.finish_reason is not None:
            self._answer(job)

    def aborted(self, job: Job) -> None:
        self._answer(job)

    def failed(self, job: Job, message: str) -> None:
        send_error(self._response, message)

    def _answer(self, job: Job) -> None:
        text = "".join(token_text(position) for position in range(job.generated))
        message = {"role": "assistant", "content": text}
        place = {"message": message} if self._generation.chat else {"text": text}
        end = {"finish_reason": job.finish_reason, "stop_reason": None}
        choice = {"index": 0, **place, "logprobs": None, **end}
        send_json(self._response, {**self._head.chunk(choice), "usage": _usage(job)})


class _Head:
    """The fields that all chunks of one answer share."""

    def __init__(self, generation: Generation, *, chunk: bool) -> None:
        chat = generation.chat
        kind = "chat.completion" + (".chunk" if chunk else "") if chat else "text_completion"
        self._fields = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{next(_serial):016x}",
            "object": kind,
            "created": int(time.time()),
            "model": generation.model,
        }

    def chunk(self, *choices: Mapping[str, object]) -> dict[str, object]:
        return {**self._fields, "choices": choices, "system_fingerprint": _FINGERPRINT}


def send_json(response: Response, document: object, status: int = HTTPStatus.OK) -> None:
    """Answer with a JSON document."""
    send_body(response, _dumps(document).encode(), status)


def send_body(response: Response, body: bytes, status: int) -> None:
    """Answer with JSON that is written already."""
    response.send(status, body, (("content-type", "application/json"),))


def send_error(response: Response, message: str) -> None:
    """Answer 500 in vLLM's form."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    send_body(response, error_body(status, message, "InternalServerError"), status)


def _usage(job: Job) -> dict[str, int]:
    return {
        "prompt_tokens": job.prompt_tokens,
        "total_tokens": job.prompt_tokens + job.generated,
        "completion_tokens": job.generated,
    }


def _event(document: Mapping[str, object]) -> bytes:
    return b"data: " + _dumps(document).encode() + b"\n\n"


def _dumps(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
