"""What is not imported costs no start-up time and cannot break: seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

LIST_MODULES = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""

SCREEN_LIBRARIES = {"textual", "rich", "plotext"}
LATE_LIBRARIES = {"pynvml", "pyrsmi", "amdsmi", "httpx", "prometheus_client"}
"""Imported where they are used: a driver library can be missing, and an HTTP client is slow."""


def libraries_of(package: str) -> set[str]:
    """Top-level modules that a fresh interpreter loads for a package and all its modules."""
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, package],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_agent_starts_without_screen_driver_and_http_libraries() -> None:
    assert not libraries_of("gpu_dash.agent") & (SCREEN_LIBRARIES | LATE_LIBRARIES)


def test_the_model_needs_nothing_but_its_codec() -> None:
    third_party = libraries_of("gpu_dash.model") - sys.stdlib_module_names - {"gpu_dash"}
    public = {name for name in third_party if not name.startswith("_")}
    assert public - {"typing_extensions"} == {"msgspec"}  # msgspec takes it where it finds it
