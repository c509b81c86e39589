"""What was measured beside what a profile is known to reach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.load import ExpectedBand, StepResult


class Place(StrEnum):
    """Where a value lies against its band."""

    BELOW = "below"
    WITHIN = "within"
    ABOVE = "above"


@dataclass(frozen=True)
class BandPlace:
    """A step at the concurrency of the band."""

    throughput: Place
    ttft: Place | None
    """``None``: the band has none, or the step has none."""
    words: str

    @property
    def is_good(self) -> bool:
        """Whether nothing is worse than expected."""
        return self.throughput is not Place.BELOW and self.ttft is not Place.ABOVE


def against_band(step: StepResult, band: ExpectedBand | None) -> BandPlace | None:
    """Compare a step with a band; ``None``: there is none, or it is for another concurrency."""
    if band is None or step.concurrency != band.concurrency:
        return None
    low, high = band.output_tokens_per_s
    rate = step.output_tokens_per_s
    throughput = Place.BELOW if rate < low else Place.ABOVE if rate > high else Place.WITHIN
    words = f"{throughput} the expected {band_words(band)}"
    ttft = None
    if band.ttft is not None and step.ttft_p50_s is not None:
        ttft = Place.ABOVE if step.ttft_p50_s > parse_duration(band.ttft) else Place.WITHIN
        words += f", TTFT {'over' if ttft is Place.ABOVE else 'within'} {band.ttft}"
    return BandPlace(throughput, ttft, words)


def band_words(band: ExpectedBand) -> str:
    """``900–1,100 tok/s``."""
    low, high = band.output_tokens_per_s
    return f"{low:,.0f}–{high:,.0f} tok/s"
