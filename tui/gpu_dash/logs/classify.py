"""Lines in, marks and findings out."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_dash.model.events import Finding
from gpu_dash.model.log import LogLine
from gpu_dash.model.text import strip_controls


class Classifier:
    """Marks lines; holds what earlier lines said."""

    def feed(
        self, texts: Sequence[str], first_number: int, at: float
    ) -> tuple[list[LogLine], list[Finding]]:
        """Classify lines in their order."""
        return [self.shown(number, text) for number, text in enumerate(texts, first_number)], []

    def settle(self, at: float) -> list[Finding]:
        """Judge what was waiting for a line that did not come."""
        return []

    def shown(self, number: int, text: str) -> LogLine:
        """A line as the pane shows it."""
        return LogLine(number, strip_controls(text.rsplit("\r", 1)[-1]))
