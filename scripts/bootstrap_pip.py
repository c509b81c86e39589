"""Install pip into the virtual environment whose Python runs this.

Debian and Ubuntu ship a Python without ``ensurepip``, so that ``python3 -m venv`` cannot put pip
into an environment. The lock names a wheel of pip with its hash: fetched, checked, and run to
install itself. Standard library only; the proxy of the environment is used.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "uv.lock"
TIMEOUT_S = 60


def locked_wheel(lock: dict[str, Any]) -> tuple[str, str]:
    """Address and SHA-256 of the pip wheel that the lock names."""
    (pip,) = (package for package in lock["package"] if package["name"] == "pip")
    (wheel,) = pip["wheels"]
    return wheel["url"], wheel["hash"].removeprefix("sha256:")


def fetch(url: str, sha256: str) -> bytes:
    """What stands at an address, if it is what the lock means.

    Raises:
        OSError: it could not be fetched, or its hash is another one.
    """
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
        content: bytes = reply.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise OSError(f"{url}: its SHA-256 is not the one in {LOCK.name}")
    return content


def main() -> None:
    """Fetch the wheel and let it install itself."""
    url, sha256 = locked_wheel(tomllib.loads(LOCK.read_text(encoding="utf-8")))
    try:
        content = fetch(url, sha256)
    except OSError as error:
        raise SystemExit(f"set-up: could not fetch pip: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder, url.rpartition("/")[2])
        wheel.write_bytes(content)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel],
            env={**os.environ, "PYTHONPATH": str(wheel)},  # a wheel is a zip that Python imports
            check=True,
        )


if __name__ == "__main__":
    main()
