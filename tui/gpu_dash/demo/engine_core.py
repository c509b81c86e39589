"""The second process of the stand-in: it shows itself as ``VLLM::EngineCore`` and sleeps.

vLLM's engine is a child of the API server and lives on, with its memory, when only the API
server is killed. This one does too, so that it can be seen whether a stop ends the whole
session; but after a minute without its parent it leaves by itself.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TITLE = "VLLM::EngineCore"
_ORPHAN_LIFE_S = 60.0
_LOOK_S = 1.0
_STOP_GRACE_S = 0.5


def start() -> "subprocess.Popen[bytes]":
    """Start this file as a process with vLLM's title, in the caller's session."""
    return subprocess.Popen(
        [TITLE, "-S", __file__],
        executable=sys.executable,
        # Python finds its library by its own file name, which the title hides.
        env={**os.environ, "PYTHONHOME": sys.base_prefix},
        stdin=subprocess.DEVNULL,
    )


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End the process, by force if it does not go at once."""
    process.terminate()
    try:
        process.wait(_STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _sleep() -> None:
    # The kernel keeps 15 bytes of it, as it does for vLLM's own.
    Path("/proc/self/comm").write_text(TITLE)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.getppid()
    orphaned: float | None = None
    while orphaned is None or time.monotonic() < orphaned + _ORPHAN_LIFE_S:
        if orphaned is None and os.getppid() != parent:
            orphaned = time.monotonic()
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    _sleep()
