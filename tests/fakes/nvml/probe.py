"""What each NVML call that we use answers: its code and the type of its value, one line a call.

    python -m tests.fakes.nvml.probe [--scripted] [--gpu 0] [--values]

On a host with a card it asks the real driver, with ``--scripted`` the scripted one. The two lists
are to be the same but for what one card offers and another does not:

    diff <(python -m tests.fakes.nvml.probe) <(python -m tests.fakes.nvml.probe --scripted)
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fakes.nvml.fixture import build_library
from tests.fakes.nvml.scene import NvmlScene

pynvml: Any = importlib.import_module("pynvml")

ALL_LINKS = 0xFFFF_FFFF
FIELDS: tuple[int | tuple[int, int], ...] = (
    74, 75, 82, 185, 186, (138, ALL_LINKS), (139, ALL_LINKS), 197, 198, 269, 270, 271,
)  # fmt: skip
_TYPES = ("double", "u32", "ulong", "u64", "s64", "s32", "u16")


def main() -> None:
    parser = argparse.ArgumentParser(description="What each NVML call answers.")
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--values", action="store_true", help="the values too")
    arguments = parser.parse_args()
    if arguments.scripted:
        _ask_scripted(arguments.gpu, values=arguments.values)
        return
    pynvml.nvmlInit()
    for name, answer, value in answers(arguments.gpu):
        print(f"{name:58} {answer}{f'  {value}' if arguments.values else ''}")


def answers(gpu: int) -> Iterator[tuple[str, str, str]]:
    """Call, code with the type of the value, and the value, of everything that we ask."""
    nvml = pynvml
    handle = nvml.nvmlDeviceGetHandleByIndex(gpu)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("nvmlDeviceGetCount", ()),
        ("nvmlSystemGetDriverVersion", ()),
        ("nvmlDeviceGetName", (handle,)),
        ("nvmlDeviceGetUUID", (handle,)),
        ("nvmlDeviceGetPciInfo", (handle,)),
        ("nvmlDeviceGetMigMode", (handle,)),
        ("nvmlDeviceGetMaxMigDeviceCount", (handle,)),
        ("nvmlDeviceGetMigDeviceHandleByIndex", (handle, 0)),
        *(("nvmlDeviceGetTemperatureThreshold", (handle, which)) for which in (0, 1, 3)),
        ("nvmlDeviceGetPowerManagementDefaultLimit", (handle,)),
        ("nvmlDeviceGetPowerManagementLimitConstraints", (handle,)),
        *(("nvmlDeviceGetMaxClockInfo", (handle, which)) for which in (1, 2)),
        ("nvmlDeviceGetTemperature", (handle, 0)),
        ("nvmlDeviceGetTemperatureV", (handle, 0)),
        ("nvmlDeviceGetMarginTemperature", (handle,)),
        ("nvmlDeviceGetPowerUsage", (handle,)),
        ("nvmlDeviceGetEnforcedPowerLimit", (handle,)),
        ("nvmlDeviceGetTotalEnergyConsumption", (handle,)),
        ("nvmlDeviceGetCurrentClocksEventReasons", (handle,)),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", (handle,)),
        *(("nvmlDeviceGetClockInfo", (handle, which)) for which in (1, 2)),
        ("nvmlDeviceGetUtilizationRates", (handle,)),
        ("nvmlDeviceGetMemoryInfo", (handle,)),
        ("nvmlDeviceGetMemoryInfo", (handle, nvml.nvmlMemory_v2)),
        ("nvmlDeviceGetFanSpeed", (handle,)),
        *(("nvmlDeviceGetTotalEccErrors", (handle, kind, 0)) for kind in (0, 1)),
        ("nvmlDeviceGetSamples", (handle, nvml.NVML_TOTAL_POWER_SAMPLES, 0)),
        ("nvmlDeviceGetComputeRunningProcesses_v3", (handle,)),
        ("nvmlDeviceGetComputeRunningProcesses_v2", (handle,)),
        ("nvmlDeviceGetSupportedEventTypes", (handle,)),
        ("nvmlEventSetCreate", ()),
    ]
    for name, given in calls:
        shown = ", ".join(str(one) for one in given if one is not handle)
        yield (f"{name}({shown})", *_answer(getattr(nvml, name), given))
    for field in FIELDS:
        (answer,) = nvml.nvmlDeviceGetFieldValues(handle, [field])
        kind = _TYPES[answer.valueType] if answer.nvmlReturn == 0 else ""
        value = answer.value.uiVal if kind == "u32" else answer.value.ullVal
        yield f"field {field}", f"{_code(answer.nvmlReturn)} {kind}".rstrip(), str(value)
    event_set = nvml.nvmlEventSetCreate()
    register = nvml.nvmlDeviceRegisterEvents
    yield (
        "register XIDs",
        *_answer(register, (handle, nvml.nvmlEventTypeXidCriticalError, event_set)),
    )
    yield "nvmlEventSetWait_v2(50 ms)", *_answer(nvml.nvmlEventSetWait_v2, (event_set, 50))


def _answer(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[str, str]:
    try:
        value = function(*given)
    except pynvml.NVMLError as error:
        return _code(error.value), ""
    return f"SUCCESS {_type(value)}", str(value)[:100]


def _type(value: Any) -> str:
    """The shape of a value, the same for every card."""
    if isinstance(value, tuple) and value and isinstance(value[-1], list):
        return f"(type {value[0]}, list)"
    if isinstance(value, list | tuple) and value and isinstance(value[0], int):
        return f"{type(value).__name__} of {len(value)}"
    return "pointer" if isinstance(value, ctypes._Pointer) else type(value).__name__


def _code(number: int) -> str:
    prefix = "NVML_ERROR_"
    names = {
        getattr(pynvml, name): name.removeprefix(prefix)
        for name in dir(pynvml)
        if name.startswith(prefix)
    }
    return "SUCCESS" if number == 0 else names.get(number, str(number))


def _ask_scripted(gpu: int, *, values: bool) -> None:
    """Ask again in a process that finds the scripted driver first."""
    with tempfile.TemporaryDirectory() as folder:
        build_library(Path(folder))
        scene = NvmlScene(Path(folder), Path(folder) / "cards.scenario")
        scene.write("")
        command = [sys.executable, "-m", __spec__.name, "--gpu", str(gpu)]
        command += ["--values"] * values
        subprocess.run(command, env={**os.environ, **scene.variables()}, check=True)


if __name__ == "__main__":
    main()
