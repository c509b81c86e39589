"""Questions to the vendors' own programs."""

from __future__ import annotations

import shutil
import subprocess

TIMEOUT_S = 20.0


def ask(program: str, *arguments: str) -> str | None:
    """What a program prints; ``None`` where it is not there, refuses or does not answer."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
