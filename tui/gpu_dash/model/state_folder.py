"""Where gpu-dash keeps what outlives it: one folder per host under the XDG state folder.

The machine id keeps two hosts that share a home directory apart.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

from gpu_dash.model.errors import UsageError


def machine_id() -> str:
    """A short, stable name of this host: from ``/etc/machine-id``, else from the host name."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        identity = ""
    identity = identity or socket.gethostname()
    return hashlib.sha256(f"gpu-dash:{identity}".encode()).hexdigest()[:12]


def state_root() -> Path:
    """gpu-dash's folder for this host: ``$XDG_STATE_HOME/gpu-dash/<machine id>``.

    Raises:
        UsageError: the account has no home and none is named.
    """
    base = os.environ.get("XDG_STATE_HOME") or ""
    try:
        root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UsageError("there is no home folder; set HOME or XDG_STATE_HOME") from error
    return root / "gpu-dash" / machine_id()
