"""A step beside what its profile is known to reach."""

from __future__ import annotations

import pytest

from gpu_dash.analysis.band import against_band
from gpu_dash.model.load import ExpectedBand, StepResult

BAND = ExpectedBand(concurrency=32, output_tokens_per_s=(900.0, 1100.0), ttft="500ms")


def step(rate: float, ttft_s: float | None, concurrency: int = 32) -> StepResult:
    return StepResult(
        step=1, concurrency=concurrency, time_s=0.0, duration_s=60.0, elapsed_s=61.0,
        output_tokens_per_s=rate, ttft_p50_s=ttft_s,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rate", "ttft_s", "words", "good"),
    [
        (1000.0, 0.4, "within the expected 900–1,100 tok/s, TTFT within 500ms", True),
        (900.0, 0.5, "within the expected 900–1,100 tok/s, TTFT within 500ms", True),
        (899.0, 0.4, "below the expected 900–1,100 tok/s, TTFT within 500ms", False),
        (1200.0, 0.4, "above the expected 900–1,100 tok/s, TTFT within 500ms", True),
        (1000.0, 0.7, "within the expected 900–1,100 tok/s, TTFT over 500ms", False),
        (1000.0, None, "within the expected 900–1,100 tok/s", True),
    ],
)
def test_a_step_at_the_bands_concurrency(
    rate: float, ttft_s: float | None, words: str, good: bool
) -> None:
    place = against_band(step(rate, ttft_s), BAND)

    assert place is not None
    assert (place.words, place.is_good) == (words, good)


def test_another_concurrency_has_no_band() -> None:
    assert against_band(step(1000.0, 0.4, concurrency=16), BAND) is None
    assert against_band(step(1000.0, 0.4), None) is None
