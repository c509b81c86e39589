"""The one place that knows which event goes into which file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.server import ServerStatus
from gpu_dash.record.gpu_rows import FastRows, GpuSeconds
from gpu_dash.record.journal import event_row
from gpu_dash.record.rows import ServerRows, request_row, step_row

NamedRow = tuple[str, list[str]]
"""The name of a file and a row for it."""


class SessionRows:
    """Turns a session's events into rows, in order.

    Args:
        anchor: the session's.
        cards: what is known of the cards before the first event.
    """

    def __init__(self, anchor: ClockAnchor, cards: Iterable[GpuInfo] = ()) -> None:
        self._anchor = anchor
        self._cards = {card.gpu: card for card in cards}
        self._seconds = GpuSeconds(anchor, self._cards)
        self._fast = FastRows(anchor, self._cards)
        self._server = ServerRows(anchor)
        self._status: ServerStatus | None = None

    def of(self, event: ev.Event) -> Iterator[NamedRow]:
        """The rows that this event makes or completes."""
        match event:
            case ev.GpuSourceChanged(gpus=gpus):
                self._cards.update({info.gpu: info for info in gpus})
            case ev.GpuSamples():
                for row in self._seconds.add(event):
                    yield "gpu.csv", row
                for row in self._fast.add(event):
                    yield "gpu_fast.csv", row
            case ev.ThrottleBegan():
                for row in self._fast.begin(event):
                    yield "gpu_fast.csv", row
            case ev.ThrottleEnded():
                self._fast.end(event)
            case ev.ServerMetricsRead(at=at, metrics=metrics):
                yield "server.csv", self._server.row(at, metrics)
            case ev.RequestsEnded(at=at, requests=requests):
                for request in requests:
                    yield "requests.csv", request_row(self._anchor, at, request)
            case ev.StepEnded(result=result):
                yield "steps.csv", step_row(self._anchor, result)
            case ev.ServerChanged(status=status):
                # Its progress moves many times in a stage; a row for each would bury the others.
                status = replace(status, stage_progress=None)
                if status == self._status:
                    return
                self._status = status
            case _:
                pass
        entry = event_row(self._anchor, event)
        if entry is not None:
            yield "events.csv", entry

    def left_over(self, at: float | None) -> Iterator[NamedRow]:
        """Rows that no later event may complete: those of seconds that are over at a moment, or
        of all that began when there is no later moment."""
        rows = self._seconds.close_all() if at is None else self._seconds.close_until(at)
        for row in rows:
            yield "gpu.csv", row
