"""Simulated cards, read from the server that simulates them, as a stranger would: over HTTP.

The server may come, go and come back on another port while the sampler runs. While none answers
the cards idle, so that the screen before a launch shows cards.
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from gpu_dash.gpu.backend import Reading, Sweep
from gpu_dash.gpu.idle_cards import default_cards, idle_sample
from gpu_dash.gpu.protocol import SIMULATED_CARDS
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.events import GpuReadFailed
from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuVendor
from gpu_dash.model.text import one_line, strip_controls

PATH = "/sim/gpus"
TIMEOUT_S = 0.5
PATIENCE_S = 1.0
"""A busy server may miss a few readings before its cards count as idle."""
MAX_BYTES = 1024 * 1024


class _Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of :class:`GpuInfo` by the same names."""

    max_operating_temperature_celsius: float | None = None
    slowdown_temperature_celsius: float | None = None
    shutdown_temperature_celsius: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_min_watts: float | None = None
    power_limit_max_watts: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    memory_total_bytes: int | None = None


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    gpu: int
    name: str
    uuid: str = ""
    pci_bus_id: str = ""
    limits: _Limits = _Limits()
    sample: dict[str, Any] = {}
    """Fields of :class:`GpuSample` by name."""
    lost: bool = False


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    gpus: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class _Card:
    info: GpuInfo
    sample: GpuSample
    lost: bool


_decoder = msgspec.json.Decoder(_Answer)


class SimulatedBackend:
    """The cards of the simulated server at a URL that may change.

    Args:
        url: where the server is; ``None``: there is none yet.
        cards: how many there are before any server has named its own.
        clock: gives the moments of the readings.
    """

    source = "sim"
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(
        self, url: str | None, clock: Clock | None = None, cards: int = SIMULATED_CARDS
    ) -> None:
        self._cards = cards
        self._clock = clock or SystemClock()
        self.gpus: tuple[GpuInfo, ...] = ()
        self.detail = ""
        self._url = url
        self._answered_at: float | None = None
        self._swept_at: float | None = None
        self._samples: dict[int, GpuSample] = {}
        self._spent_joules: dict[int, float] = {}
        self._lost: set[int] = set()

    def set_url(self, url: str | None) -> None:
        """Read the server at another URL from the next sweep on. May be called from any thread."""
        self._url = url

    def open(self) -> None:
        """Begin with idle cards."""
        self.gpus = default_cards(self._cards)

    def sweep(self) -> Sweep:
        """Read the server's cards, or let the known ones idle."""
        url = self._url
        at = self._clock.monotonic()
        try:
            cards = None if url is None else _fetch(url)
            problem = "no server runs"
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._is_patient(at, error):
                return Sweep(at, ())
            cards = None
            problem = _in_words(url, error)
        if cards is None:
            self._answered_at = None
            self.detail = f"idle cards; {problem}"
            return self._idle(at)
        self._answered_at = at
        self.detail = ""
        return self._take(at, cards)

    def processes(self) -> None:
        """There are none on cards that do not exist."""

    def _is_patient(self, at: float, error: Exception) -> bool:
        if self._answered_at is None or isinstance(error, ConnectionRefusedError):
            return False
        return at - self._answered_at < PATIENCE_S

    def _take(self, at: float, cards: Sequence[_Card]) -> Sweep:
        readings, failures = [], []
        for card in cards:
            gpu = card.info.gpu
            if not card.lost:
                self._samples[gpu] = sample = self._with_steady_energy(card.sample)
                readings.append(Reading(sample))
            elif gpu not in self._lost:
                failures.append(
                    GpuReadFailed(at=at, gpu=gpu, call=PATH, error="GPU is lost", lost=True)
                )
        self._lost = {card.info.gpu for card in cards if card.lost}
        self.gpus = tuple(card.info for card in cards)
        self._swept_at = at
        return Sweep(at, tuple(readings), tuple(failures))

    def _with_steady_energy(self, sample: GpuSample) -> GpuSample:
        """The energy counter as one that never falls: a new server begins its own at zero."""
        if sample.energy_joules is None:
            return sample
        before = self._samples.get(sample.gpu)
        spent = self._spent_joules.get(sample.gpu, 0.0)
        if before is not None and before.energy_joules is not None:
            behind = before.energy_joules - (spent + sample.energy_joules)
            if behind > 0:
                spent = self._spent_joules[sample.gpu] = before.energy_joules
        return replace(sample, energy_joules=spent + sample.energy_joules)

    def _idle(self, at: float) -> Sweep:
        elapsed = 0.0 if self._swept_at is None else at - self._swept_at
        self._swept_at = at
        self._lost.clear()
        for info in self.gpus:
            before = self._samples.get(info.gpu)
            self._samples[info.gpu] = idle_sample(info, before, elapsed)
        return Sweep(at, tuple(Reading(self._samples[info.gpu]) for info in self.gpus))


def _in_words(url: str | None, error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"no server answers at {url}"
    return one_line(f"{url}{PATH}: {error or type(error).__name__}")


def _fetch(url: str) -> list[_Card]:
    """Ask the server for its cards.

    Raises:
        OSError: nothing answers.
        HTTPException: what answers does not speak HTTP.
        ValueError: the URL is none, or what answers has no simulated cards.
    """
    parts = urlsplit(url)
    if parts.hostname is None:
        raise ValueError("no host in this URL")
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        connection.request("GET", parts.path.rstrip("/") + PATH)
        response = connection.getresponse()
        body = response.read(MAX_BYTES)
    if response.status != http.client.OK:
        raise ValueError(f"HTTP {response.status}: no simulated cards there")
    return [_card(entry) for entry in _decoder.decode(body).gpus]


def _card(entry: _Entry) -> _Card:
    info = GpuInfo(
        gpu=entry.gpu,
        name=strip_controls(entry.name),
        uuid=strip_controls(entry.uuid),
        pci_bus_id=strip_controls(entry.pci_bus_id),
        vendor=GpuVendor.SIMULATED,
        **msgspec.structs.asdict(entry.limits),
    )
    sample = msgspec.convert({**entry.sample, "gpu": entry.gpu}, GpuSample)
    limit, temperature = info.nearest_limit_celsius, sample.temperature_celsius
    if limit is not None and temperature is not None:
        sample = replace(sample, headroom_celsius=limit - temperature)
    return _Card(info, sample, entry.lost)
