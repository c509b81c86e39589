"""What the scripted driver says, written by a test."""

from __future__ import annotations

import os
from pathlib import Path


class NvmlScene:
    """A scenario file and the environment of a child process that shall see its cards.

    Args:
        library_folder: where the built library lies.
        scenario: the file to write; it need not exist.
    """

    def __init__(self, library_folder: Path, scenario: Path) -> None:
        self._library_folder = library_folder
        self._scenario = scenario

    def write(self, text: str) -> None:
        """Replace the scenario; programs see it at their next call."""
        beside = self._scenario.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self._scenario)

    def environment(self) -> dict[str, str]:
        """This process's environment with the scripted driver in front of a real one."""
        return {**os.environ, **self.variables()}

    def variables(self) -> dict[str, str]:
        """Only the variables that bring the scripted driver in."""
        before = os.environ.get("LD_LIBRARY_PATH")
        path = f"{self._library_folder}:{before}" if before else str(self._library_folder)
        return {"LD_LIBRARY_PATH": path, "FAKE_NVML_SCENARIO": str(self._scenario)}
