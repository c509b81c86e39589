"""NVIDIA cards through NVML.

What is read how often follows its cost, measured on two H200s under driver 580: temperature,
power, SM clock and reasons take 1 µs each and are read in every sweep; energy takes 3 ms (p99
17 ms) and the throttle counters nearly 1 ms, so they are read once a second, one card after the
other, so that no sweep carries them all. Names, limits and maxima are read once.

One thread reads all cards: concurrent calls would only queue at the driver's lock.
"""

from __future__ import annotations

from typing import Any

from gpu_dash.gpu.backend import SourceAbsent, Sweep
from gpu_dash.gpu.card import CardLost, NotOffered, PolledCard, ReadFailed
from gpu_dash.gpu.nvml_driver import NvmlDriver
from gpu_dash.gpu.nvml_info import read_info
from gpu_dash.gpu.nvml_processes import holders_on
from gpu_dash.gpu.nvml_quantities import fast_quantities, rare_quantities, slow_quantities
from gpu_dash.gpu.processes import Holder
from gpu_dash.gpu.silence import Silence
from gpu_dash.gpu.slow_turns import SlowTurns
from gpu_dash.gpu.xid_watch import OnXid, XidWatch
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.events import GpuReadFailed
from gpu_dash.model.gpu import GpuInfo

RARE_INTERVAL_S = 5.0


class NvmlBackend:
    """All NVIDIA cards of this host.

    Args:
        on_xid: called with each XID, from a thread of its own.
        clock: gives the moments of the readings.
    """

    source = "nvml"
    detail = ""
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(self, on_xid: OnXid, clock: Clock | None = None) -> None:
        self._on_xid = on_xid
        self._clock = clock or SystemClock()
        self._infos: list[GpuInfo] = []
        self._cards: list[PolledCard] = []
        self._driver: NvmlDriver
        self._handles: dict[int, Any] = {}
        self._turns = SlowTurns(())
        self._rare_turns = SlowTurns(())
        self._failed_to_open: list[GpuReadFailed] = []
        self._silence = Silence(0.0)

    @property
    def gpus(self) -> tuple[GpuInfo, ...]:
        """The cards, those that could not be opened too."""
        return tuple(self._infos)

    def open(self) -> None:
        """Start NVML and find the cards.

        Raises:
            SourceAbsent: there is no driver or no card.
            GpuSourceError: the driver does not start, or no card can be opened.
        """
        driver = self._driver = NvmlDriver()
        try:
            count = driver.call("nvmlDeviceGetCount")
        except (NotOffered, ReadFailed) as error:
            raise GpuSourceError(f"NVML does not count its cards: {error}") from error
        if count == 0:
            raise SourceAbsent("NVML works and finds no card; see `lspci | grep -i nvidia`")
        watch = XidWatch(driver, self._on_xid, self._clock)
        for gpu in range(count):
            self._open_card(driver, watch, gpu)
        if not self._cards:
            first = self._failed_to_open[0]
            raise GpuSourceError(f"none of the host's {count} cards opens: {first.error}")
        self._silence = Silence(self._clock.monotonic())
        gpus = [card.gpu for card in self._cards]
        self._turns = SlowTurns(gpus)
        self._rare_turns = SlowTurns(gpus, RARE_INTERVAL_S)
        watch.start()
        if watch.is_live:
            self.event_sources = ("nvml",)
        else:
            self.event_sources_missing = ("nvml: the driver offers no XID events here",)

    def sweep(self) -> Sweep:
        """Read every card.

        Raises:
            GpuSourceError: the driver is gone, or no card has answered for a while.
        """
        at = self._clock.monotonic()
        readings = []
        failures, self._failed_to_open = self._failed_to_open, []
        for card in self._cards:
            failures += card.read_fast(at)
        for card in self._cards:
            reading, new_failures = card.read_others(
                at,
                slow=self._turns.is_due(card.gpu, at),
                rare=self._rare_turns.is_due(card.gpu, at),
            )
            failures += new_failures
            if reading is not None:
                readings.append(reading)
        if self._silence.is_too_long(at, answered=bool(readings)):
            raise GpuSourceError(f"no card answers any more: {self._cards[0].failure}")
        return Sweep(at, tuple(readings), tuple(failures))

    def processes(self) -> list[Holder] | None:
        """Who computes on the cards; ``None`` if no card tells.

        Raises:
            GpuSourceError: the driver is gone.
        """
        told = [holders_on(self._driver, handle, gpu) for gpu, handle in self._handles.items()]
        known = [each for each in told if each is not None]
        return [holder for each in known for holder in each] if known else None

    def _open_card(self, driver: NvmlDriver, watch: XidWatch, gpu: int) -> None:
        call = "nvmlDeviceGetHandleByIndex"
        try:
            handle = driver.call(call, gpu)
        except (NotOffered, ReadFailed) as error:
            self._infos.append(GpuInfo(gpu=gpu, name=f"GPU {gpu}"))
            self._failed_to_open.append(
                GpuReadFailed(
                    at=self._clock.monotonic(),
                    gpu=gpu,
                    call=call,
                    error=str(error),
                    lost=isinstance(error, CardLost),
                )
            )
            return
        self._handles[gpu] = handle
        info = read_info(driver, handle, gpu)
        limit = info.nearest_limit_celsius
        self._infos.append(info)
        self._cards.append(
            PolledCard(
                gpu,
                fast_quantities(driver, handle),
                slow_quantities(driver, handle, has_limits=limit is not None),
                limit,
                rare_quantities(driver, handle),
            )
        )
        watch.add(handle, gpu)
