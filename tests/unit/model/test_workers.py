"""Workers by their ranks and by their names."""

from __future__ import annotations

import pytest

from gpu_dash.model.server import ServerStatus
from gpu_dash.model.workers import Parallel


@pytest.mark.parametrize(
    ("parallel", "names"),
    [
        (Parallel(), ["TP0"]),
        (Parallel(tensor=2), ["TP0", "TP1"]),
        (Parallel(pipeline=2), ["PP0", "PP1"]),
        (Parallel(data=2), ["DP0", "DP1"]),
        (Parallel(tensor=2, pipeline=2), ["PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"]),
        (Parallel(tensor=2, data=2), ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"]),
    ],
)
def test_names_and_ranks_are_each_others_inverse(parallel: Parallel, names: list[str]) -> None:
    assert [parallel.worker_name(rank) for rank in range(parallel.world)] == names
    assert [parallel.rank_of(name.replace(" ", "_")) for name in names] == [*range(len(names))]


@pytest.mark.parametrize("name", ["Worker_TP1", "Worker_PP2_TP0", "EngineCore", ""])
def test_a_name_that_leaves_out_what_is_needed_is_no_rank(name: str) -> None:
    assert Parallel(tensor=2, pipeline=2).rank_of(name) is None


def test_the_workers_on_a_card() -> None:
    status = ServerStatus(visible_gpus=(3, 1, 1), parallel=Parallel(tensor=3))
    assert (status.workers_on(3), status.workers_on(1)) == (("TP0",), ("TP1", "TP2"))
    assert status.workers_on(0) == ()
    assert ServerStatus(visible_gpus=(3,)).workers_on(3) == ()
