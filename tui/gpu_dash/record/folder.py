"""Where session folders lie, what they are called, and how a person names one."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

from gpu_dash.model.errors import RecordError
from gpu_dash.model.state_folder import state_root
from gpu_dash.record.columns import FILES

META_FILE = "session.toml"
LOG_FILE = "server.log"
LAST = "last"
_LABEL_CHARACTERS = 40
_SHOWN_CANDIDATES = 5


def sessions_root() -> Path:
    """The folder of all sessions of this host and user, whether it exists or not."""
    return state_root() / "sessions"


def new_session_folder(label: str, *, root: Path | None = None) -> Path:
    """Make a folder named after the moment and a label, private to the user.

    Args:
        label: the session's label, or its profile's name.
        root: where; :func:`sessions_root` if left out.

    Raises:
        RecordError: it cannot be made.
    """
    root = root or sessions_root()
    words = re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII)[:_LABEL_CHARACTERS].strip("-.")
    moment = f"{datetime.now():%Y%m%d-%H%M%S}"
    name = f"{moment}-{words}" if words else moment
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(2, 1000):
            folder = root / name
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                name = f"{moment}-{words}-{number}" if words else f"{moment}-{number}"
            else:
                return folder
    except OSError as error:
        raise RecordError(
            f"{root}: {error.strerror}; set XDG_STATE_HOME, or name a folder with --out"
        ) from error
    raise RecordError(f"{root}: too many sessions began in this second; try again")


def check_session_folder(path: Path) -> None:
    """Make sure that a folder which a person named is there and empty; make it if it is new.

    Raises:
        RecordError: it holds something already, or cannot be made or written.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        holds = next(iter(path.iterdir()), None)
    except FileExistsError as error:
        raise RecordError(f"{path} is not a folder; name a new or empty one") from error
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; name a folder that you can write") from error
    if holds is not None:
        raise RecordError(f"{path} is not empty; name a new or empty folder")
    if not os.access(path, os.W_OK | os.X_OK):
        raise RecordError(f"{path} cannot be written; name a folder that you can write")


def is_session_folder(path: Path) -> bool:
    """Whether a session was recorded there, whole or not."""
    return any((path / name).is_file() for name in (META_FILE, *FILES))


def session_folders(root: Path | None = None) -> list[Path]:
    """The folders of the recorded sessions, oldest first."""
    try:
        entries = sorted((root or sessions_root()).iterdir())
    except OSError:
        return []
    return [entry for entry in entries if is_session_folder(entry)]


def find_session(text: str, *, root: Path | None = None) -> Path:
    """The folder that a person means.

    Args:
        text: a session's name, the beginning of only one name, ``last``, or a path.
        root: where names are looked up; :func:`sessions_root` if left out.

    Raises:
        RecordError: there is none, or more than one.
    """
    if os.sep in text or text in (".", ".."):
        return _checked(Path(text))
    folders = session_folders(root)
    if text == LAST:
        if not folders:
            raise RecordError("no session was recorded yet; gpu-dash demo records one")
        return folders[-1]
    for folder in folders:
        if folder.name == text:
            return folder
    found = [folder for folder in folders if text and folder.name.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(folder.name for folder in found[:_SHOWN_CANDIDATES])
        more = f" and {len(found) - _SHOWN_CANDIDATES} more" if found[_SHOWN_CANDIDATES:] else ""
        raise RecordError(f"{text!r} could be {names}{more}; write more of the name")
    if text and Path(text).is_dir():
        return _checked(Path(text))
    raise RecordError(f"no session is called {text!r}; see gpu-dash sessions list")


def _checked(path: Path) -> Path:
    if not path.is_dir():
        raise RecordError(f"{path} is no folder; name a session folder")
    if not is_session_folder(path):
        raise RecordError(f"{path} holds no session: neither {META_FILE} nor one of its files")
    return path
