"""The live figures: what arrived since the last tick, over all that is in flight."""

from __future__ import annotations

from collections.abc import Collection

from gpu_dash.load.exchange import Exchange, gaps_between
from gpu_dash.load.protocol import Tick
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import Outcome


class Pulse:
    """Counts the tokens of exchanges from tick to tick.

    It reads the stamps that each exchange keeps anyway, so a token costs nothing here when it
    arrives.
    """

    def __init__(self) -> None:
        self._counted_chunks: dict[Exchange, int] = {}
        """Chunks of each open exchange that earlier ticks have counted."""
        self._begin()

    def ended(self, exchange: Exchange) -> None:
        """Count what is left of an exchange that ended."""
        self._count(exchange)
        self._counted_chunks.pop(exchange, None)
        if exchange.outcome is Outcome.OK:
            self._requests_ok += 1
        elif exchange.outcome is not Outcome.CANCELLED:
            self._requests_failed += 1

    def tick(
        self,
        in_flight: Collection[Exchange],
        *,
        at: float,
        interval_s: float,
        path: str,
        loop_lag_s: float,
        cpu_s: float,
    ) -> Tick:
        """What has gathered, with what is in flight counted up to now; begins anew."""
        for exchange in in_flight:
            self._count(exchange)
        tick = Tick(
            at=at,
            interval_s=interval_s,
            in_flight=len(in_flight),
            path=path,
            output_tokens=self._output_tokens,
            requests_ok=self._requests_ok,
            requests_failed=self._requests_failed,
            ttft=self._ttft.counts,
            gaps=self._gaps.counts,
            send_lags=self._send_lags.counts,
            loop_lag_s=loop_lag_s,
            cpu_s=cpu_s,
            busiest_cpu_s=cpu_s,
        )
        self._begin()
        return tick

    def _begin(self) -> None:
        self._output_tokens = 0
        self._requests_ok = 0
        self._requests_failed = 0
        self._ttft = Histogram()
        self._gaps = Histogram()
        self._send_lags = Histogram()

    def _count(self, exchange: Exchange) -> None:
        arrivals = exchange.answer.arrivals
        counted = self._counted_chunks.get(exchange, 0)
        if counted == len(arrivals):
            return
        if counted == 0:
            self._ttft.add(arrivals[0] - exchange.counts_from)
            self._send_lags.add(exchange.send_lag_s)
        self._gaps.add_all(gaps_between(arrivals[max(0, counted - 1) :]))
        self._output_tokens += len(arrivals) - counted
        self._counted_chunks[exchange] = len(arrivals)
