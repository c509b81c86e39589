"""Several load workers that look like one: shares go down, sums come up."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gpu_dash.load.child import WorkerChild
from gpu_dash.load.protocol import (
    Configure,
    FromWorker,
    SetLoad,
    StepDrained,
    Tick,
    ToWorker,
    WorkerReady,
)
from gpu_dash.load.shares import add_ticks, share_of


class WorkerPool:
    """The load workers of one driver. If one is lost, all are ended: a part of a load is no load.

    Args:
        workers: how many.
        on_frame: told of each frame: of starts and ends as they come, of a drained step when it
            is drained in every worker, of ticks added up.
        on_lost: told in words why one ended, when that was not asked for.
    """

    def __init__(
        self,
        workers: int,
        on_frame: Callable[[FromWorker], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._left = workers
        """Workers that have not ended."""
        self._why_lost = ""
        self._open_files: dict[int, int] = {}
        self._sharers: dict[int, set[int]] = {}
        """Step to the workers that have a share of it and have not drained it."""
        self._ticks: dict[int, Tick] = {}
        self._children = [self._start(index) for index in range(workers)]

    def send(self, frame: ToWorker) -> None:
        """Put a frame on its way, to each worker its share of it."""
        workers = len(self._children)
        if isinstance(frame, SetLoad):
            # a worker without a share is told too: it ends the step before
            self._sharers[frame.step] = self._sharers.get(frame.step, set()) | {
                index for index in range(workers) if share_of(frame, index, workers).sends
            }
        for index, child in enumerate(self._children):
            match frame:
                case SetLoad():
                    child.send(share_of(frame, index, workers))
                case Configure():
                    # no two workers give the same number
                    child.send(
                        msgspec.structs.replace(frame, request_stride=workers, request_offset=index)
                    )
                case _:
                    child.send(frame)

    async def close(self) -> None:
        """End the workers: each stops by itself when its stdin closes, or is killed."""
        for child in self._children:
            await child.close()

    def kill(self) -> None:
        """End the workers at once, whatever they do."""
        for child in self._children:
            child.kill()

    def _start(self, index: int) -> WorkerChild:
        return WorkerChild(lambda frame: self._take(index, frame), self._lose)

    def _take(self, index: int, frame: FromWorker) -> None:
        match frame:
            case WorkerReady():
                self._open_files[index] = frame.open_files
                if len(self._open_files) == len(self._children):
                    self._on_frame(WorkerReady(open_files=min(self._open_files.values())))
            case StepDrained():
                sharers = self._sharers.get(frame.step, set())
                sharers.discard(index)
                if not sharers:
                    self._sharers.pop(frame.step, None)
                    self._on_frame(frame)
            case Tick():
                if index in self._ticks:
                    self._tell_ticks()
                self._ticks[index] = frame
                if len(self._ticks) == len(self._children):
                    self._tell_ticks()
            case _:
                self._on_frame(frame)

    def _tell_ticks(self) -> None:
        self._on_frame(add_ticks(list(self._ticks.values())))
        self._ticks.clear()

    def _lose(self, why: str) -> None:
        if not self._why_lost:
            self._why_lost = why
            self.kill()
        self._left -= 1
        if self._left == 0:
            self._on_lost(self._why_lost)
