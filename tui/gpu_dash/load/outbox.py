"""Collects what a worker has to report, and sends it in few frames."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable

from gpu_dash.load.protocol import Ended, FromWorker, Started, StartedRequest, StepDrained
from gpu_dash.model.histogram import Histogram
from gpu_dash.model.load import RequestRecord

FLUSH_AFTER_S = 0.05
"""How long a report may wait for company."""


class Outbox:
    """Keeps the order that the protocol promises.

    Args:
        send: puts one frame on its way; must not block.
    """

    def __init__(self, send: Callable[[FromWorker], None]) -> None:
        self._send = send
        self._started: list[StartedRequest] = []
        self._ended: dict[int, list[RequestRecord]] = {}
        self._gaps: dict[int, Histogram] = {}
        self._timer: asyncio.TimerHandle | None = None

    def started(self, request: StartedRequest) -> None:
        """A request was started."""
        self._started.append(request)
        self._flush_soon()

    def ended(self, record: RequestRecord, gaps: array[float] | None) -> None:
        """A request ended.

        Args:
            record: what it came to.
            gaps: seconds between its tokens; ``None`` if they do not count.
        """
        self._ended.setdefault(record.step, []).append(record)
        histogram = self._gaps.setdefault(record.step, Histogram())
        if gaps is not None:
            histogram.add_all(gaps)
        self._flush_soon()

    def drained(self, step: int) -> None:
        """Nothing of this step will come any more."""
        self.flush()
        self._send(StepDrained(step=step))

    def flush(self) -> None:
        """Send what has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._started:
            self._send(Started(requests=tuple(self._started)))
            self._started.clear()
        for step, records in self._ended.items():
            gaps = self._gaps[step].counts
            self._send(Ended(step=step, requests=tuple(records), gaps=gaps))
        self._ended.clear()
        self._gaps.clear()

    def _flush_soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(FLUSH_AFTER_S, self.flush)
