"""AMD cards through the vendor's command, where sysfs does not show them.

The last resort: a call takes a quarter of a second and more, so it is made once a second and a
short throttle is missed.
"""

from __future__ import annotations

import shutil
import subprocess

from gpu_dash.gpu.backend import Reading, SourceAbsent, Sweep
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.failures import read_failures
from gpu_dash.gpu.saved.reading import read_saved
from gpu_dash.model.clock import Clock, SystemClock
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.text import one_line

INTERVAL_S = 1.0
TIMEOUT_S = 10.0
COMMANDS = (
    ("amd-smi", "metric", "--json"),
    (
        "rocm-smi", "--showtemp", "--showpower", "--showmaxpower", "--showclocks", "--showuse",
        "--showmemuse", "--showmeminfo", "vram", "--showproductname", "--showbus",
        "--showuniqueid", "--json",
    ),
)  # fmt: skip


class SmiBackend:
    """The cards that ``amd-smi`` or ``rocm-smi`` names.

    Args:
        clock: gives the moments of the readings.
    """

    source = "amd"
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._command: tuple[str, ...] = ()
        self._cards: list[SavedCard] = []
        self._read_at: float | None = None
        self.gpus: tuple[GpuInfo, ...] = ()
        self.detail = ""

    def open(self) -> None:
        """Find a command that names cards.

        Raises:
            SourceAbsent: neither command is installed, or none names a card.
        """
        problems = []
        for command in COMMANDS:
            if shutil.which(command[0]) is None:
                problems.append(f"no `{command[0]}` on the PATH")
                continue
            try:
                self._cards = _cards_of(command)
            except GpuSourceError as error:
                problems.append(str(error))
                continue
            self._command = command
            self.gpus = tuple(card.info for card in self._cards)
            self.detail = f"read by `{command[0]}` once a second, as sysfs shows no card"
            return
        raise SourceAbsent("; ".join(problems))

    def sweep(self) -> Sweep:
        """Read the cards when a second has passed; between, there is nothing new.

        Raises:
            GpuSourceError: the command does not work any more.
        """
        at = self._clock.monotonic()
        if self._read_at is not None:
            if at - self._read_at < INTERVAL_S:
                return Sweep(at, ())
            self._cards = _cards_of(self._command)
            self.gpus = tuple(card.info for card in self._cards)
            at = self._clock.monotonic()
        self._read_at = at
        return Sweep(at, tuple(Reading(card.sample) for card in self._cards))

    def processes(self) -> None:
        """Neither command is asked for them."""


def _cards_of(command: tuple[str, ...]) -> list[SavedCard]:
    """Run a command and read the cards.

    Raises:
        GpuSourceError: it fails, hangs or names no card.
    """
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise GpuSourceError(
            f"`{command[0]}` did not answer within {TIMEOUT_S:g} s; see `dmesg | grep amdgpu`"
        ) from error
    except OSError as error:
        raise GpuSourceError(f"`{command[0]}`: {error.strerror}") from error
    cards = read_saved(ended.stdout).cards
    if cards:
        return cards
    failures = read_failures(ended.stdout + ended.stderr)
    words = failures[0].message if failures else ended.stderr.strip() or "no card"
    raise GpuSourceError(f"`{command[0]}` names no card: {one_line(words)[:200]}")
