"""The profiles of this host, for the launch screen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_dash.cli.targets import begin_profile
from gpu_dash.doctor.check import Check
from gpu_dash.doctor.profile import Prospect, examine_profile, look_ahead, release_to_check
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.server.flags.correct import correct_profile
from gpu_dash.server.profile_edit import keep_corrected
from gpu_dash.server.profile_file import (
    find_profile,
    load_profile,
    package_profiles_folder,
    profile_files,
    read_profile,
)
from gpu_dash.ui.launch_desk import Choice


class HostDesk:
    """Reads profiles where ``gpu-dash profiles`` does, with the environment of this shell."""

    def choices(self) -> list[Choice]:
        """Every profile there is; the user's own hides the package's of that name."""
        return [_choice(path) for path in profile_files()]

    def look_ahead(self, name: str, cards: Sequence[GpuInfo]) -> Prospect:
        return look_ahead(load_profile(name), os.environ, os.getcwd(), cards)

    def examine(self, name: str) -> Iterator[Check]:
        yield from examine_profile(load_profile(name), os.environ, os.getcwd())

    def begin(self, name: str, *, corrected: bool, force: bool) -> Launch | Watch:
        return begin_profile(load_profile(name), corrected=corrected, force=force)

    def keep_corrections(self, name: str) -> Path:
        profile = load_profile(name)
        right = correct_profile(profile, release_to_check(profile, os.environ))
        return keep_corrected(find_profile(name), right.profile)


def _choice(path: Path) -> Choice:
    own = path.parent != package_profiles_folder()
    try:
        profile = read_profile(path)
    except UsageError as error:
        return Choice(path.stem, own=own, problem=str(error))
    return Choice(path.stem, profile.description, own=own)
