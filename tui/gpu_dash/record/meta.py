"""``session.toml``: what ran, on what, and how it came out.

It never holds a key: environment variables are named without their values, and
:mod:`~gpu_dash.record.redact` goes over everything else.
"""

from __future__ import annotations

import os
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from gpu_dash.analysis.verdict import Verdict
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.errors import RecordError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.server import HandleKind
from gpu_dash.model.text import strip_controls
from gpu_dash.record.folder import META_FILE
from gpu_dash.record.redact import hide_in_command, hide_secrets


class SessionMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session was. Empty or ``None``: not known."""

    gpu_dash_version: str = ""
    session: str
    label: str = ""
    profile: str = ""
    model: str = ""
    base_url: str = ""
    kind: HandleKind = HandleKind.PROCESS
    """Whether gpu-dash started the server, and as what; ``external``: somebody else did."""
    argv: tuple[str, ...] = ()
    """The server's argument list."""
    environment_names: tuple[str, ...] = ()
    """Names of the variables that the profile sets."""
    vllm_version: str = ""
    gpu_source: str = ""
    visible_gpus: tuple[int, ...] | None = None
    """Indexes of the server's cards; ``None``: all."""
    boot_id: str = ""
    """The boot that the anchor's monotonic moment belongs to."""
    utc_offset_s: int | None = None
    """Local time minus UTC when it began: the server's log has local times."""
    ended_utc: str = ""
    exit_code: int | None = None
    """The server's."""
    knee_concurrency: int | None = None
    rows_lost: int = 0
    """Rows that could not be written."""
    anchor: ClockAnchor
    plan: LoadPlan | None = None
    """The ramp that was offered first."""
    gpus: tuple[GpuInfo, ...] = ()
    verdict: Verdict | None = None


def local_utc_offset_s(utc: float) -> int:
    """Seconds by which this host's local time is ahead of UTC at a moment."""
    offset = datetime.fromtimestamp(utc).astimezone().utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def write_meta(folder: Path, meta: SessionMeta) -> None:
    """Write ``session.toml`` in one piece: whoever reads it sees the old or the new one.

    Raises:
        OSError: it could not be written; the old one is still there.
    """
    meta = msgspec.structs.replace(meta, argv=hide_in_command(meta.argv))
    document = {
        "started_utc": meta.anchor.time_utc(meta.anchor.monotonic),
        **_writable(msgspec.to_builtins(meta)),
    }
    target = folder / META_FILE
    fresh = folder / f".{META_FILE}.new"
    try:
        with open(fresh, "wb", opener=_private) as file:
            tomli_w.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def read_meta(folder: Path) -> SessionMeta | None:
    """What ``session.toml`` says; ``None`` if there is none.

    Raises:
        RecordError: it cannot be read or is not one of ours.
    """
    path = folder / META_FILE
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), SessionMeta)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise RecordError(f"{path}: {error}; move it away to read the other files") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _writable(value: Any) -> Any:
    """What TOML can say: no nulls, and texts without controls and keys."""
    if isinstance(value, dict):
        return {key: _writable(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value if item is not None]
    if isinstance(value, str):
        return "\n".join(hide_secrets(strip_controls(line)) for line in value.split("\n"))
    return value
