"""Whether the client, and not the server, is the limit: what it says about itself, judged.

A load generator that is late measures itself. Its workers report how late their own timers are,
how late requests are sent, and how much of a core they use; a step in which that was too much
most of the time says nothing about the server, and does not count for the knee.
"""

from __future__ import annotations

from collections import deque

from gpu_dash.load.protocol import Tick
from gpu_dash.model.histogram import Histogram

CPU_LIMIT = 0.8
"""Share of one core that a worker uses; above, whatever comes next waits for it."""
LAG_LIMIT_S = 0.02
"""A timer or a request that is so late shows in every latency."""


def send_lag_p99_s(tick: Tick) -> float | None:
    """How much later than due all but the last hundredth of a tick's requests were sent."""
    lags = Histogram()
    lags.merge(tick.send_lags)
    return lags.percentile(99)


def is_at_limit(tick: Tick) -> bool:
    """The client was at its limit in this tick."""
    return (
        tick.busiest_cpu_s > CPU_LIMIT * tick.interval_s
        or tick.loop_lag_s > LAG_LIMIT_S
        or (send_lag_p99_s(tick) or 0.0) > LAG_LIMIT_S
    )


class ClientWatch:
    """Remembers the ticks until their steps are judged."""

    def __init__(self) -> None:
        self._ticks: deque[tuple[float, bool]] = deque()

    def add(self, tick: Tick) -> bool:
        """Take a tick; whether the client was at its limit in it."""
        limited = is_at_limit(tick)
        self._ticks.append((tick.at, limited))
        return limited

    def was_bound(self, opened_at: float, closed_at: float) -> bool:
        """Whether the client was at its limit in more than half of the ticks of a window. Windows
        are asked for in order; ticks before one are forgotten."""
        while self._ticks and self._ticks[0][0] < opened_at:
            self._ticks.popleft()
        inside = [limited for at, limited in self._ticks if at <= closed_at]
        return 2 * sum(inside) > len(inside)
