"""How a request ended: the first outcome that fits, and what to say about a failure.

An error is never a fast success: an answer counts as ``ok`` only when it is whole, has choices,
carries a token, reports no error, and is as long as was asked or ended by the model's own stop.
"""

from __future__ import annotations

import itertools
import json
import re

from gpu_dash.load.answer import Answer
from gpu_dash.model.load import Outcome
from gpu_dash.model.text import one_line

MAX_DETAIL_CHARACTERS = 200

_MODEL_MISSING = re.compile(
    r"\bmodel:?\s+(\S+\s+)?"
    r"(does not exist|doesn't exist|not exist|(is |was |could )?not (be )?"
    r"(found|served|available|loaded|supported))"
    r"|\b(unknown|no such|invalid) model\b|model_not_found",
    re.IGNORECASE,
)
_CONTEXT_EXCEEDED = re.compile(
    r"context[ _](length|size|window|limit)"
    r"|maximum (model|input|sequence|prompt) length"
    r"|max_model_len|max_new_tokens`? must be"
    r"|\b(input|prompt)\b.{0,80}(exceeds|too long|longer than)",
    re.IGNORECASE | re.DOTALL,
)
_KEY_REFUSED = re.compile(r"invalid_api_key|(invalid|incorrect) api key|api key not valid", re.I)

_BY_STATUS = {
    401: Outcome.UNAUTHORIZED,
    403: Outcome.UNAUTHORIZED,
    429: Outcome.RATE_LIMITED,
    503: Outcome.OVERLOADED,
    529: Outcome.OVERLOADED,
}
_STOPS = frozenset(
    {
        "stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "complete",
        "tool_calls", "tool_call", "tool_use", "function_call",
    }
)  # fmt: skip
"""Reasons with which the model itself ended; after any other, too few tokens are a cut."""


def outcome_of_status(status: int, body: str) -> Outcome | None:
    """The outcome that an HTTP status and its body stand for; ``None`` for a success.

    The status decides; the body tells apart what servers put under one status (a missing model
    and a wrong path are both 404, a prompt that is too long comes as 400, 413, 422 and 500).
    """
    if 200 <= status < 300:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 400 <= status < 500:
        if _KEY_REFUSED.search(body):
            return Outcome.UNAUTHORIZED
        if _MODEL_MISSING.search(body):
            return Outcome.MODEL_NOT_FOUND
        if status == 404:
            return Outcome.NOT_FOUND
    if status >= 400 and _CONTEXT_EXCEEDED.search(body):
        return Outcome.CONTEXT_EXCEEDED
    return Outcome.SERVER_ERROR if status >= 500 else Outcome.BAD_REQUEST


def outcome_of_answer(answer: Answer, asked_tokens: int) -> Outcome:
    """The outcome of a body with a success status that came to its end.

    Args:
        answer: what was read of it.
        asked_tokens: ``max_tokens`` of the request.
    """
    if answer.malformed is not None:
        return Outcome.MALFORMED
    if answer.error is not None:
        return Outcome.ERROR_IN_STREAM
    if not answer.has_choices:
        return Outcome.MALFORMED if answer.stray_text else Outcome.NO_CHOICES
    if not answer.arrivals:
        return Outcome.EMPTY
    return Outcome.CUT if _is_cut(answer, asked_tokens) else Outcome.OK


def _is_cut(answer: Answer, asked_tokens: int) -> bool:
    reason = (answer.finish_reason or "").casefold()
    if reason in _STOPS or answer.output_tokens >= asked_tokens * answer.choices:
        return False
    # chunks may hold several tokens, so without usage the server's word for the length stands
    return not (reason == "length" and answer.usage_missing)


def describe_answer(answer: Answer, outcome: Outcome, asked_tokens: int) -> str:
    """What to say about an answer that was no success, or no stream."""
    match outcome:
        case Outcome.MALFORMED:
            return f"not an answer: {answer.malformed or answer.stray_text}"
        case Outcome.ERROR_IN_STREAM:
            return answer.error or ""
        case Outcome.NO_CHOICES:
            return answer.complaint or "HTTP 200 without choices"
        case Outcome.EMPTY:
            return f"no token; finish_reason {answer.finish_reason}"
        case Outcome.CUT:
            return (
                f"{answer.output_tokens} of {asked_tokens * answer.choices} tokens; "
                f"finish_reason {answer.finish_reason}"
            )
        case _:
            return "" if answer.is_streamed else "answered whole, not as a stream: TTFT is E2E"


def make_detail(text: str, *secrets: str) -> str:
    """Text from a server or an exception, fit for a table and a file: one short line without
    control sequences and without the API key."""
    text = one_line(text)
    for spelling in itertools.chain.from_iterable(map(_spellings, secrets)):
        text = text.replace(spelling, "[key]")
    if len(text) > MAX_DETAIL_CHARACTERS:
        return text[: MAX_DETAIL_CHARACTERS - 1] + "…"
    return text


def _spellings(secret: str) -> set[str]:
    """The secret as it stands in plain text, in JSON and in a Python message."""
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]}
