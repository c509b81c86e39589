"""A sampler as its agent starts it, for tests that look at its frames."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeVar

from gpu_dash.gpu.child import sampler_command
from gpu_dash.gpu.protocol import GpuEvent, SetSimulatedUrl
from gpu_dash.model.events import GpuSamples
from gpu_dash.model.frames import FrameDecoder, encode_frame
from gpu_dash.model.gpu import GpuSample

PATIENCE_S = 30.0

E = TypeVar("E")


class SamplerRun:
    """A running sampler and what it has said; ends with the ``with`` block.

    Args:
        source: as on its command line.
        environment: of the child.
    """

    def __init__(self, source: str, environment: Mapping[str, str]) -> None:
        self.events: list[GpuEvent] = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            sampler_command(source, None),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def __enter__(self) -> SamplerRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close_stdin()
        self.process.kill()
        self.process.wait()
        self._reading.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def close_stdin(self) -> None:
        """What a sampler sees when its agent is gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def send(self, order: SetSimulatedUrl) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode_frame(order))
        self.process.stdin.flush()

    def wait(
        self,
        kind: type[E],
        fits: Callable[[E], bool] = lambda event: True,
        after: int = 0,
        patience_s: float = PATIENCE_S,
    ) -> E:
        """The first event of a kind that fits, among those from number ``after`` on.

        Raises:
            AssertionError: it does not come in time.
        """
        deadline = time.monotonic() + patience_s
        looked_at = after
        with self._news:
            while True:
                for event in self.events[looked_at:]:
                    if isinstance(event, kind) and fits(event):
                        return event
                looked_at = len(self.events)
                if not self._news.wait(deadline - time.monotonic()):
                    others = [event for event in self.events if not isinstance(event, GpuSamples)]
                    raise AssertionError(f"no such {kind.__name__}; but {others}")

    def sample(
        self, gpu: int, fits: Callable[[GpuSample], bool] = lambda sample: True
    ) -> GpuSample:
        """The first new sample of a card that fits."""
        event = self.wait(
            GpuSamples,
            lambda event: any(each.gpu == gpu and fits(each) for each in event.samples),
            after=len(self.events),
        )
        return next(each for each in event.samples if each.gpu == gpu)

    def _read(self) -> None:
        assert self.process.stdout is not None
        decoder: FrameDecoder[GpuEvent] = FrameDecoder(GpuEvent)
        while data := os.read(self.process.stdout.fileno(), 65536):
            with self._news:
                self.events.extend(decoder.feed(data))
                self._news.notify_all()
