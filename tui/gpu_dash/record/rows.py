"""Facts as rows: the cells of each file in the order of its columns.

Seconds have six decimals in ``requests.csv`` and ``steps.csv``, so that a reader who computes a
step from its requests comes to the same numbers; everywhere else a time has three.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.gpu import GpuInfo, GpuSample
from gpu_dash.model.load import RequestRecord, StepResult
from gpu_dash.model.server import ServerMetrics
from gpu_dash.record import columns
from gpu_dash.record.cells import flag_cell, number_cell, text_cell

_FINE = 6


def time_cells(anchor: ClockAnchor, at: float) -> tuple[str, str]:
    """``time_s`` and ``time_utc`` of a monotonic moment."""
    return f"{anchor.time_s(at):.3f}", anchor.time_utc(at)


@dataclass(frozen=True)
class Extremes:
    """What the fast samples in a row reached, and their mean where a single one says little."""

    temperature_max_celsius: float | None
    power_max_watts: float | None
    sm_clock_min_mhz: float | None
    sm_clock_mean_mhz: float | None
    throttle_reasons: tuple[str, ...]

    @classmethod
    def of(cls, sample: GpuSample) -> Extremes:
        """Those of a row with a single sample."""
        return cls(
            temperature_max_celsius=sample.temperature_celsius,
            power_max_watts=sample.power_watts,
            sm_clock_min_mhz=sample.sm_clock_mhz,
            sm_clock_mean_mhz=sample.sm_clock_mhz,
            throttle_reasons=sample.throttle_reasons,
        )


def gpu_row(
    anchor: ClockAnchor, at: float, info: GpuInfo | None, sample: GpuSample, extremes: Extremes
) -> list[str]:
    """A row of ``gpu.csv``: a card's reading at a moment, and the extremes of its row."""
    info = info or GpuInfo(gpu=sample.gpu, name="")
    memory_total = sample.memory_total_bytes or info.memory_total_bytes
    return [
        *time_cells(anchor, at),
        str(sample.gpu),
        text_cell(info.uuid),
        text_cell(info.name),
        number_cell(sample.temperature_celsius),
        number_cell(sample.hotspot_temperature_celsius),
        number_cell(sample.memory_temperature_celsius),
        number_cell(info.slowdown_temperature_celsius),
        number_cell(sample.power_watts),
        number_cell(sample.power_limit_watts),
        number_cell(sample.energy_joules),
        number_cell(sample.sm_clock_mhz),
        number_cell(info.sm_clock_max_mhz),
        number_cell(sample.memory_clock_mhz),
        number_cell(sample.utilization_percent),
        number_cell(sample.memory_used_bytes),
        number_cell(memory_total),
        number_cell(sample.headroom_celsius),
        number_cell(extremes.temperature_max_celsius),
        number_cell(extremes.power_max_watts),
        number_cell(extremes.sm_clock_min_mhz),
        text_cell("+".join(extremes.throttle_reasons)),
        number_cell(sample.throttle_thermal_s, _FINE),
        number_cell(sample.throttle_power_s, _FINE),
        number_cell(sample.power_peak_watts),
        number_cell(sample.memory_utilization_percent),
        number_cell(sample.fan_percent),
        number_cell(sample.pcie_tx_bytes),
        number_cell(sample.pcie_rx_bytes),
        number_cell(sample.nvlink_tx_bytes),
        number_cell(sample.nvlink_rx_bytes),
        number_cell(sample.ecc_corrected),
        number_cell(sample.ecc_uncorrected),
        text_cell("+".join(map(number_cell, sample.hbm_temperatures_celsius or ()))),
        number_cell(sample.power_mean_watts),
        number_cell(sample.energy_age_s),
        number_cell(extremes.sm_clock_mean_mhz, 1),
    ]


def request_row(anchor: ClockAnchor, reported_at: float, request: RequestRecord) -> list[str]:
    """A row of ``requests.csv``."""
    return [
        str(request.request),
        str(request.step),
        str(request.concurrency),
        f"{anchor.time_s(request.scheduled):.6f}",
        f"{anchor.time_s(request.sent):.6f}",
        anchor.time_utc(request.sent),
        number_cell(request.ttft_s, _FINE),
        number_cell(request.tpot_s, _FINE),
        number_cell(request.e2e_s, _FINE),
        number_cell(request.prompt_tokens),
        str(request.output_tokens),
        str(request.tokens_in_window),
        flag_cell(request.counted),
        request.outcome.value,
        text_cell(request.detail),
        flag_cell(request.usage_missing),
        f"{anchor.time_s(reported_at):.6f}",
        number_cell(request.conversation),
        number_cell(request.turn),
        str(request.retries),
    ]


def step_row(anchor: ClockAnchor, result: StepResult) -> list[str]:
    """A row of ``steps.csv``."""
    cells = []
    for name in columns.STEPS[:-1]:
        value = getattr(result, name)
        cells.append(flag_cell(value) if isinstance(value, bool) else number_cell(value, _FINE))
    return [*cells, anchor.time_utc(anchor.monotonic + result.time_s)]


class ServerRows:
    """Rows of ``server.csv``: each reading with its rates since the one before."""

    def __init__(self, anchor: ClockAnchor) -> None:
        self._anchor = anchor
        self._before: tuple[float, ServerMetrics] | None = None

    def row(self, at: float, metrics: ServerMetrics) -> list[str]:
        """The row of one reading."""
        before_at, before = self._before or (at, metrics)
        elapsed_s = at - before_at
        self._before = (at, metrics)

        def advance(name: str) -> float | None:
            """What a counter gained; ``None`` after a restart of the server."""
            now, then = getattr(metrics, name), getattr(before, name)
            return now - then if now is not None and then is not None and now >= then else None

        def rate(name: str) -> str:
            gained = advance(name)
            return number_cell(gained / elapsed_s if gained is not None and elapsed_s else None)

        queries, hits = advance("prefix_cache_queries_total"), advance("prefix_cache_hits_total")
        return [
            *time_cells(self._anchor, at),
            *(number_cell(getattr(metrics, name), _FINE) for name in columns.SERVER[2:11]),
            rate("prompt_tokens_total"),
            rate("generation_tokens_total"),
            rate("preemptions_total"),
            rate("iterations_total"),
            number_cell(hits / queries if queries and hits is not None else None, _FINE),
        ]
