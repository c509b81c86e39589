"""What the load brings over time: throughput and time to first token."""

from __future__ import annotations

from gpu_dash.agent.store import LoadPoint, ServerPoint
from gpu_dash.model.offered import highest
from gpu_dash.ui.render.braille import Layer
from gpu_dash.ui.render.chart import Chart, now_and_peak
from gpu_dash.ui.render.format import count, latency, short
from gpu_dash.ui.render.row import Role
from gpu_dash.ui.render.scale import Scale
from gpu_dash.ui.render.series import Gather, Series
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import BETWEEN_FIRST_TOKENS_S, View

_NO_LABELS = ("", "")


class ThroughputPlot:
    """Output tokens per second: of our own load, or the server's own count where others load."""

    def __init__(self) -> None:
        self._ours: Series[LoadPoint] = Series(lambda point: point.output_tokens_per_s, Gather.MEAN)
        self._server: Series[ServerPoint] = Series(
            lambda point: point.generation_tokens_per_s, Gather.MEAN
        )

    def chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        store = view.store
        title = "tok/s"
        values = self._ours.on(axis, store.load_history)
        history = store.load_history
        is_live = bool(history) and not view.is_stale(history[-1].at)
        now = view.output_tokens_per_s if is_live else None
        if not any(values):
            generated = self._server.on(axis, store.server_history)
            if any(generated):
                values, title = generated, "server tok/s"
                now = view.server_tokens_per_s
        peak = highest(values)
        scale = Scale.from_zero(peak)
        return Chart(
            scale=scale,
            labels=_NO_LABELS if peak is None else (short(scale.high), "0"),
            layers=[Layer(axis.width, height, Role.GOOD).line(values, scale)],
            beside=[
                [(title, Role.DIM)],
                *now_and_peak(now, peak, count, Role.GOOD, was_there=bool(history)),
            ],
        )


class FirstTokenPlot:
    """Time to first token: the highest of the medians of each second."""

    def __init__(self) -> None:
        self._series: Series[LoadPoint] = Series(
            lambda point: point.ttft_s, Gather.HIGHEST, gap_s=BETWEEN_FIRST_TOKENS_S
        )

    def chart(self, view: View, axis: TimeAxis, height: int) -> Chart:
        history = view.store.load_history
        values = self._series.on(axis, history)
        peak = highest(values)
        scale = Scale.from_zero(peak)
        was_there = any(point.ttft_s is not None for point in history)
        unit, factor = ("ms", 1000.0) if scale.high < 1 else ("s", 1.0)
        return Chart(
            scale=scale,
            labels=_NO_LABELS if peak is None else (short(scale.high * factor), "0"),
            layers=[Layer(axis.width, height, Role.ACCENT).line(values, scale)],
            beside=[
                [(f"TTFT {unit}", Role.DIM)],
                *now_and_peak(view.live_ttft_s, peak, latency, Role.ACCENT, was_there=was_there),
            ],
        )
