"""Which requests are sent again, when, and what is said of it.

Only one that was refused before its first token: nobody listened, or the server said to come back
later. What broke in the middle is an outcome of its own and is never hidden by a second try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from gpu_dash.load.exchange import Exchange
from gpu_dash.load.outcome import MAX_DETAIL_CHARACTERS
from gpu_dash.model.load import Outcome, RequestRecord

_RETRIED = frozenset({Outcome.REFUSED, Outcome.RATE_LIMITED, Outcome.OVERLOADED})
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0


def wait_before_retry_s(attempts: Sequence[Exchange], retries: int) -> float | None:
    """How long to wait until a request is sent again; ``None``: it is not.

    Args:
        attempts: how it was sent so far.
        retries: how many times at most it is sent again.
    """
    last = attempts[-1]
    if len(attempts) > retries or last.outcome not in _RETRIED or last.is_given_up:
        return None
    return float(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (len(attempts) - 1)))


def tell_retries(record: RequestRecord, earlier: Sequence[Exchange]) -> RequestRecord:
    """The record of a request with what its earlier attempts met."""
    if not earlier:
        return record
    met = Counter(exchange.outcome for exchange in earlier)
    words = f"after {', '.join(f'{count} × {outcome}' for outcome, count in met.items())}"
    detail = f"{words}; {record.detail}" if record.detail else words
    return msgspec.structs.replace(
        record, retries=len(earlier), detail=detail[:MAX_DETAIL_CHARACTERS]
    )
