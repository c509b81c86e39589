"""All that is known of the cards, for the box that a key opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from gpu_dash.agent.store import GpuTrack, Store
from gpu_dash.gpu.fault_sources import fault_source_lines
from gpu_dash.model.gpu import GpuProcess, GpuSample
from gpu_dash.ui.render.format import gib, pair, whole
from gpu_dash.ui.render.row import Role, Row, clean

_LABEL_WIDTH = 14

Fact = tuple[str, str]


def card_detail_rows(store: Store, width: int) -> list[Row]:
    """Every card with its values, its workers and its processes, then where faults are heard.

    Args:
        store: what is known.
        width: cells; what is longer goes on in the next row.
    """
    rows: list[Row] = []
    for track in store.gpu_tracks():
        rows.append(_title(track))
        for label, text in (*_facts(track), *_users(store, track.info.gpu)):
            rows += _wrapped(label, text, width)
        rows.append(Row())
    if store.gpu_processes_detail:
        rows += [*_wrapped("processes", store.gpu_processes_detail, width), Row()]
    if store.gpus:
        for line in fault_source_lines(store.gpu_event_sources, store.gpu_event_sources_missing):
            rows += [Row([(part, Role.PLAIN)]) for part in wrap(line, width)]
    return rows or [Row([(store.gpu_detail or "no cards", Role.PLAIN)])]


def is_of_server(store: Store, process: GpuProcess) -> bool:
    """Whether a process belongs to the server, by its session or its ancestors."""
    return store.server.pid is not None and store.server.pid in process.belongs_to


def strangers_on(store: Store, gpu: int) -> list[GpuProcess]:
    """The processes on a card that are known to be somebody else's; of a server without a pid of
    its own, as in a container, nobody can tell which are not its."""
    if store.server.pid is None:
        return []
    return [
        process
        for process in store.gpu_processes
        if process.gpu == gpu and process.name and not is_of_server(store, process)
    ]


def _title(track: GpuTrack) -> Row:
    info = track.info
    words = " ".join(word for word in (info.pci_bus_id, info.uuid) if word)
    return Row([(f"{info.gpu} {info.name}", Role.STRONG), (f"  {words}", Role.DIM)])


def _wrapped(label: str, text: str, width: int) -> Iterator[Row]:
    for part in wrap(clean(text), max(20, width - _LABEL_WIDTH)):
        yield Row([(f"  {label}", Role.DIM)]).pad(_LABEL_WIDTH).add(part)
        label = ""


def _facts(track: GpuTrack) -> Iterator[Fact]:
    info, sample = track.info, track.latest
    if track.lost:
        yield "lost", track.lost
    if sample is None:
        return
    yield "temperature", _temperatures(track, sample)
    limits = _range(info.power_limit_min_watts, info.power_limit_max_watts)
    power = pair(sample.power_watts, sample.power_limit_watts, " W")
    yield (
        "power",
        _joined(
            power,
            _named("mean", sample.power_mean_watts, " W"),
            _named("peak", sample.power_peak_watts, " W"),
            f"limit may be {limits} W" if limits else "",
        ),
    )
    yield (
        "clocks",
        _joined(
            f"SM {pair(sample.sm_clock_mhz, info.sm_clock_max_mhz, ' MHz')}",
            f"memory {pair(sample.memory_clock_mhz, info.memory_clock_max_mhz, ' MHz')}",
        ),
    )
    used = pair(gib(sample.memory_used_bytes), gib(sample.memory_total_bytes), " GiB")
    busy = "n/a (MIG)" if info.mig_uuids else whole(sample.utilization_percent, " %")
    yield "use", _joined(f"busy {busy}", f"memory {used}", _named("fan", sample.fan_percent, " %"))
    yield (
        "throttled",
        _joined(
            _named("thermal", sample.throttle_thermal_s, " s"),
            _named("power", sample.throttle_power_s, " s"),
            " ".join(sample.throttle_reasons) and f"now {' '.join(sample.throttle_reasons)}",
        ),
    )
    if sample.ecc_corrected is not None or sample.ecc_uncorrected is not None:
        corrected, uncorrected = whole(sample.ecc_corrected), whole(sample.ecc_uncorrected)
        yield "ECC errors", f"{corrected} corrected, {uncorrected} not"
    if info.mig_uuids:
        yield "MIG", ", ".join(info.mig_uuids)


def _temperatures(track: GpuTrack, sample: GpuSample) -> str:
    info = track.info
    stacks = sample.hbm_temperatures_celsius or ()
    return _joined(
        whole(sample.temperature_celsius, " °C"),
        _named("hotspot", sample.hotspot_temperature_celsius, " °C"),
        _named("memory", sample.memory_temperature_celsius, " °C"),
        f"stacks {' '.join(whole(stack) for stack in stacks)} °C" if stacks else "",
        _named("slows at", info.slowdown_temperature_celsius, " °C"),
        _named("room", sample.headroom_celsius, " °C"),
    )


def _users(store: Store, gpu: int) -> Iterator[Fact]:
    workers = store.server.workers_on(gpu)
    if workers:
        yield "server's", ", ".join(workers)
    for process in store.gpu_processes:
        if process.gpu == gpu:
            yield (
                "process",
                _joined(
                    f"{process.name or 'not seen here'} (pid {process.pid})",
                    ""
                    if process.memory_bytes is None
                    else f"{process.memory_bytes / 2**30:.1f} GiB",
                    "the server's" if is_of_server(store, process) else "",
                ),
            )


def _named(name: str, value: float | None, unit: str) -> str:
    return "" if value is None else f"{name} {value:.0f}{unit}"


def _range(least: float | None, most: float | None) -> str:
    return "" if least is None or most is None else f"{least:.0f}…{most:.0f}"


def _joined(*parts: str) -> str:
    return ", ".join(_filled(parts)) or "–"


def _filled(parts: Sequence[str]) -> Iterator[str]:
    return (part for part in parts if part)
