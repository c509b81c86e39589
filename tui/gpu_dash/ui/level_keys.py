"""Which level of load each key leads to: pure numbers, for requests in flight and for rates."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.load import LoadPlan

PRESETS: dict[str, int] = {str(digit): 2 ** (digit - 1) for digit in range(1, 10)}
"""Digits: 1 is 1 request at a time or per second, then 2, 4, 8 … up to 9 for 256."""
_CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_RATES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
_LOWEST_RATE = 0.1
"""Requests per second: below, one waits longer for a request than for its answer."""
_DIGITS = 3
"""Significant digits of a rate: halving it again and again does not make it unreadable."""


@dataclass(frozen=True)
class AskedLoad:
    """How much load is asked for."""

    concurrency: int = 0
    """Requests in flight; 0 in an open loop, and where nothing is asked for."""
    rate: float | None = None
    """Requests per second of an open loop."""

    @property
    def is_none(self) -> bool:
        """Nothing is asked for."""
        return self.concurrency == 0 and self.rate is None

    @property
    def label(self) -> str:
        """Short enough for the key bar: ``8``, ``2.5/s``."""
        return f"{self.concurrency}" if self.rate is None else f"{self.rate:g}/s"


def level_after(key: str, now: AskedLoad, plan: LoadPlan | None) -> AskedLoad:
    """What one of ``+ - ] [ 1…9`` makes of a load; of none, a load of the kind of the plan's ramp.

    Args:
        key: the key.
        now: what is asked for.
        plan: its ramp is the ladder that ``+`` and ``-`` climb.
    """
    rates = plan.rates if plan is not None else ()
    if now.rate is not None or (now.is_none and rates):
        rate = _rate_after(key, now.rate or 0.0, tuple(sorted({*rates})) or _RATES)
        return AskedLoad(rate=rate) if rate else now
    ladder = tuple(sorted({*plan.ramp})) if plan is not None else _CONCURRENCIES
    return AskedLoad(_concurrency_after(key, now.concurrency, ladder))


def other_kind(
    now: AskedLoad, plan: LoadPlan | None, *, rate_now: float | None, in_flight: int
) -> AskedLoad:
    """About the same load by the other rule: of so many in flight so many per second, and back.

    Args:
        now: what is asked for.
        plan: where to begin when nothing is.
        rate_now: requests per second that are answered now, if that is known.
        in_flight: requests in flight now.
    """
    if now.rate is not None:
        return AskedLoad(max(1, in_flight))
    if now.is_none or not rate_now:
        return AskedLoad(rate=plan.rates[0] if plan is not None and plan.rates else 1.0)
    return AskedLoad(rate=max(_LOWEST_RATE, _round(rate_now, digits=2)))


def _concurrency_after(key: str, now: int, ladder: tuple[int, ...]) -> int:
    if key in PRESETS:
        return PRESETS[key]
    if key == "+":
        return next((step for step in ladder if step > now), max(1, now * 2))
    if key == "-":
        lower = [step for step in ladder if step < now]
        return lower[-1] if lower else max(min(now, 1), now // 2)
    return now * 2 if key == "]" else max(min(now, 1), now // 2)


def _rate_after(key: str, now: float, ladder: tuple[float, ...]) -> float:
    if key in PRESETS:
        return float(PRESETS[key])
    if key == "+":
        wanted = next((step for step in ladder if step > now), now * 2)
    elif key == "-":
        lower = [step for step in ladder if step < now]
        wanted = lower[-1] if lower else now / 2
    else:
        wanted = now * 2 if key == "]" else now / 2
    # a rate that is below the lowest already, as a profile may ask for, is not raised by halving
    return _round(max(wanted, min(now, _LOWEST_RATE)), _DIGITS)


def _round(rate: float, digits: int) -> float:
    return float(f"{rate:.{digits}g}")
