"""Which of several back ends is taken."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.backend import SourceAbsent, Sweep
from gpu_dash.gpu.sources import FirstPresent
from gpu_dash.model.errors import GpuSourceError
from gpu_dash.model.gpu import GpuInfo


class Fake:
    """A back end that opens, or says why not."""

    detail = ""
    event_sources: tuple[str, ...] = ()
    event_sources_missing: tuple[str, ...] = ()

    def __init__(self, source: str, problem: Exception | None = None) -> None:
        self.source = source
        self.gpus = (GpuInfo(gpu=0, name=source),)
        self._problem = problem

    def open(self) -> None:
        if self._problem is not None:
            raise self._problem

    def sweep(self) -> Sweep:
        return Sweep(1.0, ())

    def processes(self) -> None: ...


def test_the_first_that_is_there_is_taken() -> None:
    backend = FirstPresent([Fake("nvml", SourceAbsent("no driver")), Fake("amd"), Fake("late")])
    backend.open()
    assert (backend.source, backend.gpus[0].name) == ("amd", "amd")
    assert backend.sweep().at == 1.0


def test_a_broken_one_is_not_stepped_over() -> None:
    backend = FirstPresent([Fake("nvml", GpuSourceError("driver mismatch")), Fake("amd")])
    with pytest.raises(GpuSourceError, match="driver mismatch"):
        backend.open()
    assert backend.source == "nvml"


def test_when_none_is_there_each_reason_is_said() -> None:
    absent = [Fake("nvml", SourceAbsent("no driver")), Fake("amd", SourceAbsent("no card"))]
    with pytest.raises(SourceAbsent, match="no driver; no card"):
        FirstPresent(absent).open()
