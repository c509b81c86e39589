"""What the launch screen needs of the rest: profiles to choose from, and what is known of each
before a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpu_dash.doctor.check import Check
from gpu_dash.doctor.profile import Prospect
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.gpu import GpuInfo


@dataclass(frozen=True)
class Choice:
    """One profile of the list."""

    name: str
    description: str = ""
    own: bool = False
    """It lies in the user's folder, not in the package."""
    problem: str = ""
    """Why it cannot be read; empty for one that can."""


class LaunchDesk(Protocol):
    """The profiles of this host. Everything but :meth:`choices` may take seconds and is called
    from a thread."""

    def choices(self) -> list[Choice]:
        """Every profile there is, by name."""
        ...

    def look_ahead(self, name: str, cards: Sequence[GpuInfo]) -> Prospect:
        """What a launch would start, and what is known of it.

        Raises:
            UsageError: the profile cannot be read.
        """
        ...

    def examine(self, name: str) -> Iterator[Check]:
        """Every check of a profile, host or endpoint, as soon as each is known.

        Raises:
            UsageError: the profile cannot be read.
        """
        ...

    def begin(self, name: str, *, corrected: bool, force: bool) -> Launch | Watch:
        """The command that launches a profile, or takes the endpoint that it names.

        Args:
            name: of the profile.
            corrected: with flags and variables as its vLLM takes them.
            force: launch although the pre-flight says no.

        Raises:
            UsageError: a key's variable is not set.
        """
        ...

    def keep_corrections(self, name: str) -> Path:
        """Write the corrections into the user's own file of that profile; its comments stay.

        Raises:
            UsageError: they cannot be written.
        """
        ...
