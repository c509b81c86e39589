"""The one instant that a frame shows."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.agent.store import GpuTrack, Store
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.server import ServerState
from gpu_dash.ui.feed import Access, Link, LinkState, PlayState

STALE_S = 3.0
"""A reading older than this is shown grey, with its age."""
BETWEEN_FIRST_TOKENS_S = 15.0
"""At a low concurrency first tokens are far apart without anything being wrong."""

_RATE_POINTS = 2


@dataclass(frozen=True)
class Message:
    """What the dashboard itself says about the last key."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class View:
    """Everything that the rows of a frame are made from.

    Attributes:
        store: what is known; only read.
        now: the moment that ages count to.
        link: whether events still come.
        access: what this viewer may do.
        play: where a replay stands; ``None`` for anything live.
        window_s: seconds on the time axis.
        can_launch: a profile to launch is known.
        message: what the last key met, while it is fresh.
    """

    store: Store
    now: float
    link: Link
    access: Access
    play: PlayState | None = None
    window_s: float = 120.0
    can_launch: bool = False
    message: Message | None = None

    @property
    def is_lost(self) -> bool:
        """No event comes any more: nothing on the screen is live."""
        return self.link.state is LinkState.LOST

    @property
    def origin(self) -> float:
        """The moment that times on the screen count from: the session's start."""
        anchor = self.store.anchor
        return anchor.monotonic if anchor is not None else 0.0

    def age(self, moment: float | None) -> float | None:
        """Seconds since a moment."""
        return None if moment is None else max(0.0, self.now - moment)

    def is_stale(self, moment: float | None) -> bool:
        """Whether a reading of that moment must no longer look live."""
        return self.is_lost or moment is None or self.now - moment > STALE_S

    def gpu_is_stale(self, track: GpuTrack) -> bool:
        """Whether a card's reading must no longer look live."""
        if self.store.gpu_state in (GpuSourceState.FAILED, GpuSourceState.NONE):
            return True
        return self.is_stale(track.latest_at)

    @property
    def output_tokens_per_s(self) -> float | None:
        """Throughput of our own load over the last two seconds of it, live or not; ``None`` when
        there was none."""
        points = self.store.load_history[-_RATE_POINTS:]
        seconds = sum(point.seconds for point in points)
        if self.store.tick is None or seconds <= 0:
            return None
        return sum(point.output_tokens for point in points) / seconds

    @property
    def live_ttft_s(self) -> float | None:
        """The newest median time to first token; ``None`` when it is too old to be called live."""
        for point in reversed(self.store.load_history):
            if self.is_lost or self.now - point.at > BETWEEN_FIRST_TOKENS_S:
                break
            if point.ttft_s is not None:
                return point.ttft_s
        return None

    @property
    def server_tokens_per_s(self) -> float | None:
        """Throughput by the server's own count, whoever loads it; ``None`` when it is not fresh."""
        history = self.store.server_history
        if not history or self.is_stale(history[-1].at):
            return None
        return history[-1].generation_tokens_per_s

    @property
    def server_is_up(self) -> bool:
        """Whether the server can take load."""
        return self.store.server.state is ServerState.READY
