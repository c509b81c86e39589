"""The scripted driver as a pytest fixture: built when it is needed, steered through a file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = sorted(HERE.glob("*.c"))
LIBRARY = "libnvidia-ml.so.1"


class NvmlScene:
    """A scenario file and the environment of a child process that shall see its cards.

    Args:
        library_folder: where the built library lies.
        scenario: the file to write; it need not exist.
    """

    def __init__(self, library_folder: Path, scenario: Path) -> None:
        self._library_folder = library_folder
        self._scenario = scenario

    def write(self, text: str) -> None:
        """Replace the scenario; programs see it at their next call."""
        beside = self._scenario.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self._scenario)

    def environment(self) -> dict[str, str]:
        """This process's environment with the scripted driver in front of a real one."""
        return {**os.environ, **self.variables()}

    def variables(self) -> dict[str, str]:
        """Only the variables that bring the scripted driver in."""
        before = os.environ.get("LD_LIBRARY_PATH")
        path = f"{self._library_folder}:{before}" if before else str(self._library_folder)
        return {"LD_LIBRARY_PATH": path, "FAKE_NVML_SCENARIO": str(self._scenario)}


def build_library(folder: Path) -> None:
    """Compile the library into a folder, whole or not at all.

    Raises:
        CalledProcessError: the C code does not compile.
    """
    unfinished = folder / f"{LIBRARY}.{os.getpid()}"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-shared", "-fPIC"]
    command += [f"-Wl,-soname,{LIBRARY}", "-o", str(unfinished), *map(str, SOURCES), "-lpthread"]
    subprocess.run(command, check=True)
    unfinished.replace(folder / LIBRARY)


@pytest.fixture(scope="session")
def nvml_library_folder(pytestconfig: pytest.Config) -> Path:
    """Folder with the built library, kept in pytest's cache by a hash of the source."""
    digest = hashlib.sha256()
    for source in [*SOURCES, *sorted(HERE.glob("*.h"))]:
        digest.update(source.read_bytes())
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"fake-nvml-{digest.hexdigest()[:16]}")
    if not (folder / LIBRARY).exists():
        if shutil.which("gcc") is None:
            _cannot_build("no gcc to build the scripted NVIDIA driver")
        build_library(folder)
    return folder


@pytest.fixture
def nvml_scene(nvml_library_folder: Path, tmp_path: Path) -> NvmlScene:
    """Eight idle cards until the test writes a scenario."""
    scene = NvmlScene(nvml_library_folder, tmp_path / "cards.scenario")
    scene.write("")
    return scene


def _cannot_build(reason: str) -> None:
    if os.environ.get("GPU_DASH_NO_SKIP") == "1":
        pytest.fail(f"{reason}, and GPU_DASH_NO_SKIP=1 lets no test be skipped")
    pytest.skip(reason)
