"""The scripted driver as a pytest fixture: built when it is needed, steered through a file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.nvml.scene import NvmlScene

HERE = Path(__file__).parent
SOURCES = sorted(HERE.glob("*.c"))
LIBRARY = "libnvidia-ml.so.1"


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
            pytest.skip("no gcc to build the scripted NVIDIA driver")
        build_library(folder)
    return folder


@pytest.fixture
def nvml_scene(nvml_library_folder: Path, tmp_path: Path) -> NvmlScene:
    """Eight idle cards until the test writes a scenario."""
    scene = NvmlScene(nvml_library_folder, tmp_path / "cards.scenario")
    scene.write("")
    return scene
