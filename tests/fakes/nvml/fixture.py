"""The scripted driver as a pytest fixture: built when it is needed, steered through a file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.nvml.scene import NvmlScene

SOURCES = sorted(Path(__file__).parent.glob("*.c"))
LIBRARY = "libnvidia-ml.so.1"


def build_library(folder: Path) -> None:
    """Compile the library into a folder.

    Raises:
        CalledProcessError: the C code does not compile.
    """
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-shared", "-fPIC"]
    command += [f"-Wl,-soname,{LIBRARY}", "-o", str(folder / LIBRARY), *map(str, SOURCES)]
    subprocess.run([*command, "-lpthread"], check=True)


@pytest.fixture(scope="session")
def nvml_library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the library, built once a run; it takes a third of a second."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build the scripted NVIDIA driver")
    folder = tmp_path_factory.mktemp("nvml")
    build_library(folder)
    return folder


@pytest.fixture
def nvml_scene(nvml_library_folder: Path, tmp_path: Path) -> NvmlScene:
    """Eight idle cards until the test writes a scenario."""
    scene = NvmlScene(nvml_library_folder, tmp_path / "cards.scenario")
    scene.write("")
    return scene
