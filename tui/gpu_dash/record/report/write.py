"""The report's file: private to the user, whole or not there, never over another by accident."""

from __future__ import annotations

import os
from pathlib import Path

from gpu_dash.model.errors import RecordError


def write_private(path: Path, content: str, *, is_forced: bool = False) -> None:
    """Write a file that only its owner can read.

    Args:
        path: where to.
        content: all of it.
        is_forced: it may take the place of what is there already.

    Raises:
        RecordError: there is something already, or it cannot be written.
    """
    target = path.with_name(f".{path.name}.{os.getpid()}.new") if is_forced else path
    try:
        with open(target, "x", encoding="utf-8", opener=_private) as file:
            try:
                file.write(content)
                file.flush()
                if is_forced:
                    target.replace(path)
            except OSError:
                target.unlink(missing_ok=True)
                raise
    except FileExistsError as error:
        raise RecordError(
            f"{path} is there already; name another file with --output, or say --force"
        ) from error
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; name a file that you can write") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
