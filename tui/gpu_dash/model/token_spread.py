"""How the numbers of tokens that requests ask for are spread, and how a person writes it."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from gpu_dash.model.errors import UsageError

_WRITTEN = re.compile(r"(?P<kind>[a-z]+):(?P<first>\d+(\.\d+)?),(?P<second>\d+(\.\d+)?)")
MOST_TOKENS = 10**9
"""Far above anything that a server takes."""


class SpreadKind(StrEnum):
    """The distributions that there are."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    """Cut off below one token."""
    LOGNORMAL = "lognormal"
    """Many short and a few long ones, as people get them."""


class TokenSpread(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution of a number of tokens."""

    kind: SpreadKind
    mean: float
    deviation: float
    """Standard deviation; of ``uniform`` half of its width."""


def checked_tokens(tokens: int) -> int:
    """A number of tokens that a request can ask for.

    Raises:
        UsageError: it is none.
    """
    if not 1 <= tokens <= MOST_TOKENS:
        raise UsageError(f"{tokens}: a request asks for 1 to {MOST_TOKENS:,} tokens")
    return tokens


def parse_token_spread(text: str) -> TokenSpread:
    """``uniform:64,256`` (least, most), ``normal:200,50`` or ``lognormal:200,100`` (mean and
    standard deviation of the numbers themselves).

    Raises:
        UsageError: it is none of these, or one of its numbers makes no sense.
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or match["kind"] not in list(SpreadKind):
        raise UsageError(
            f"{text!r}: write a number of tokens, uniform:LEAST,MOST, normal:MEAN,DEVIATION or "
            "lognormal:MEAN,DEVIATION"
        )
    kind, first, second = SpreadKind(match["kind"]), float(match["first"]), float(match["second"])
    if first < 1 or max(first, second) > MOST_TOKENS:
        raise UsageError(f"{text!r}: a request asks for 1 to {MOST_TOKENS:,} tokens")
    if kind is SpreadKind.UNIFORM:
        if second < first:
            raise UsageError(f"{text!r}: the least comes first, then the most")
        return TokenSpread(kind=kind, mean=(first + second) / 2, deviation=(second - first) / 2)
    return TokenSpread(kind=kind, mean=first, deviation=second)
