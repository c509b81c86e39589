"""The agent's hold on its sampler: starts it, watches it, replaces it, says how it fares."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from gpu_dash.gpu.child import SamplerChild
from gpu_dash.gpu.continuity import Continuity
from gpu_dash.gpu.protocol import (
    EXIT_NO_SOURCE,
    EXIT_SOURCE_LOST,
    SIMULATED_CARDS,
    GpuEvent,
    SetSimulatedUrl,
)
from gpu_dash.model.errors import AgentError
from gpu_dash.model.events import GpuSourceChanged
from gpu_dash.model.gpu import GpuSourceState

STALE_S = 2.0
"""A sampler that reads has been silent for this long: its readings are old."""
HUNG_S = 10.0
"""It has been silent for this long: it is replaced."""
SLOW_OPEN_S = 5.0
"""Opening the source takes this long: worth a word, and normal without persistence mode."""
HUNG_OPEN_S = 60.0
RETRY_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Waiting times before the next sampler; the last one for all that follow."""
TRIES = 5
"""A source that never worked is given up after so many."""
STEADY_S = 10.0
"""A sampler that read for this long starts the waiting times anew."""
END_S = 1.0
"""Time to end by itself, and again after SIGKILL."""


class SamplerProcess:
    """A sampler that is always there, as far as the host allows.

    Args:
        source: ``auto``, ``nvml``, ``amd``, ``sim`` or ``none``.
        on_event: called with each event, on the event loop.
        sim_url: where the simulated cards are, for the source ``sim``.
        sim_cards: how many there are while no server has named its own.
    """

    def __init__(
        self,
        source: str,
        on_event: Callable[[GpuEvent], None],
        sim_url: str | None = None,
        sim_cards: int = SIMULATED_CARDS,
    ) -> None:
        self._source = source
        self._on_event = on_event
        self._sim_url = sim_url
        self._sim_cards = sim_cards
        self._child: SamplerChild | None = None
        self._continuity = Continuity()
        self._supervision: asyncio.Task[None] | None = None
        self._tries = 0

    @property
    def pid(self) -> int | None:
        """Process id of the present sampler."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Begin; what the source is comes as an event."""
        self._tell(GpuSourceState.STARTING)
        self._supervision = asyncio.create_task(self._supervise())

    def set_simulated_url(self, url: str | None) -> None:
        """Say where the simulated cards are now; ``None``: nowhere."""
        self._sim_url = url
        if self._child is not None:
            self._child.send(SetSimulatedUrl(url=url))

    async def stop(self) -> None:
        """End the sampler. One that sleeps inside the driver is left behind after two seconds."""
        if self._supervision is not None:
            self._supervision.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervision
            self._supervision = None
        child, self._child = self._child, None
        if child is not None:
            child.ask_to_end()
            if not await self._end(child):
                child.abandon()
        self._emit(self._continuity.ended())

    async def _supervise(self) -> None:
        while True:
            may_return = await self._run_child()
            if not self._continuity.ever_live:
                if not may_return:
                    return
                if self._tries == TRIES:
                    self._tell(
                        GpuSourceState.FAILED,
                        f"{self._continuity.detail}; given up after {TRIES} tries",
                    )
                    return
            await asyncio.sleep(RETRY_S[min(self._tries, len(RETRY_S)) - 1])

    async def _run_child(self) -> bool:
        """One sampler from start to end.

        Returns:
            Whether another may do better.
        """
        self._tries += 1
        url = self._sim_url
        try:
            child = self._child = await SamplerChild.start(self._source, url, self._sim_cards)
        except OSError as error:
            self._tell_lost(f"the sampler cannot be started: {error}")
            return True
        if self._sim_url != url:
            child.send(SetSimulatedUrl(url=self._sim_url))
        hung = await self._follow(child)
        if hung:
            child.kill()
        if not await self._end(child):
            self._tell(
                GpuSourceState.STALE,
                f"the sampler (pid {child.pid}) cannot be ended: it sleeps inside the driver, "
                "as another would; see `dmesg`: the driver or the host needs a restart",
            )
            await child.gone()
        self._child = None
        if self._continuity.read_for_s >= STEADY_S:
            self._tries = 1
        self._emit(self._continuity.ended())
        if hung:
            self._tell_lost(hung)
        elif child.returncode not in (EXIT_NO_SOURCE, EXIT_SOURCE_LOST):
            self._tell_lost(child.describe_end())
        # with the other two exit codes it has said itself what is wrong
        return child.returncode != EXIT_NO_SOURCE

    async def _follow(self, child: SamplerChild) -> str:
        """Pass a sampler's events on until it ends or is hung.

        Returns:
            Why it must be ended; empty if it ended by itself.
        """
        heard_at = time.monotonic()
        warned = False
        while True:
            reads = self._continuity.live_since is not None
            limit = (STALE_S, HUNG_S) if reads else (SLOW_OPEN_S, HUNG_OPEN_S)
            patience = heard_at + limit[warned] - time.monotonic()
            try:
                events = await child.events(max(0.0, patience))
            except TimeoutError:
                if warned:
                    return f"the sampler was silent for {limit[1]:.0f} s: a driver call hangs"
                warned = True
                self._tell_silent(limit[0], reads=reads)
                continue
            except AgentError as error:
                return f"the sampler's output cannot be read: {error}"
            if events is None:
                return ""
            heard_at = time.monotonic()
            if warned:
                warned = False
                self._emit(self._continuity.speaks_again(heard_at))
            for event in events:
                self._emit(self._continuity.take(event))

    async def _end(self, child: SamplerChild) -> bool:
        """Wait for the end of a sampler that should end, and then force it.

        Returns:
            False if it is still there.
        """
        if await child.gone(END_S):
            return True
        child.kill()
        return await child.gone(END_S)

    def _tell_silent(self, seconds: float, *, reads: bool) -> None:
        if reads:
            self._tell(
                GpuSourceState.STALE,
                f"no reading for {seconds:.0f} s: a driver call hangs; after {HUNG_S:.0f} s the "
                "sampler is replaced",
            )
        elif not self._continuity.ever_live:
            self._tell(
                GpuSourceState.STARTING,
                f"opening the driver takes more than {seconds:.0f} s; without persistence mode "
                "(`nvidia-smi -pm 1`) it starts each card anew",
            )

    def _tell_lost(self, detail: str) -> None:
        if self._continuity.ever_live:
            self._tell(GpuSourceState.STALE, f"{detail}; it is replaced")
        else:
            self._tell(GpuSourceState.FAILED, detail)

    def _tell(self, state: GpuSourceState, detail: str = "") -> None:
        source = self._continuity.source or self._source
        event = GpuSourceChanged(at=time.monotonic(), source=source, state=state, detail=detail)
        self._emit(self._continuity.tell(event))

    def _emit(self, events: Iterable[GpuEvent]) -> None:
        for event in events:
            self._on_event(event)
