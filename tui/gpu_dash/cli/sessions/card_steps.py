"""The table of cards by step: what throttling cost them."""

from __future__ import annotations

from gpu_dash.analysis.card_steps import CardStep
from gpu_dash.cli.sessions import words

HEAD = ("STEP", "LOAD", "GPU", "THERMAL", "POWER CAP", "CLOCK DEFICIT", "MIN CLOCK", "PEAK")


def card_step_cells(card: CardStep) -> tuple[str, ...]:
    """A line of the table."""
    deficit = card.clock_deficit
    return (
        str(card.step),
        words.load(card.concurrency, card.request_rate),
        str(card.gpu),
        words.value(card.throttle_thermal_s, " s", digits=1),
        words.value(card.throttle_power_s, " s", digits=1),
        words.value(None if deficit is None else 100 * deficit, " %", digits=1),
        words.value(card.min_sm_clock_mhz, " MHz"),
        words.value(card.peak_temperature_celsius, " °C"),
    )
