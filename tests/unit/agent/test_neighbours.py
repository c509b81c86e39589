"""Two servers on one host keep their ports and cards apart."""

from __future__ import annotations

import pytest

from gpu_dash.agent.neighbours import check_neighbours
from gpu_dash.agent.state_file import SessionState
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.errors import PreflightError
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.server import ServerState, ServerStatus


def other(source: str = "nvml") -> SessionState:
    return SessionState(
        session="s",
        folder="/s",
        anchor=ClockAnchor(monotonic=0, utc=0),
        boot_id="b",
        label="",
        gpu_source=source,
        plan=LoadPlan(),
        status=ServerStatus(
            state=ServerState.STARTING,
            profile="other",
            base_url="http://127.0.0.1:8000",
            visible_gpus=(0, 1),
        ),
        api_key_env=None,
        ready_timeout_s=1,
        shutdown_timeout_s=1,
        log=None,
    )


@pytest.mark.parametrize(
    ("port", "gpus", "says"),
    [
        (8000, (2, 3), "8000 belongs to other, which is starting"),
        (8001, (1, 2), "GPU 1 is used by other, which is starting"),
    ],
)
def test_a_port_or_card_of_a_server_that_is_still_loading_is_refused(
    port: int, gpus: tuple[int, ...], says: str
) -> None:
    with pytest.raises(PreflightError, match=says):
        check_neighbours("profile 'p'", port, gpus, "nvml", [other()])


def test_others_may_run_beside_it() -> None:
    check_neighbours("profile 'p'", 8001, (2, 3), "nvml", [other()])
    check_neighbours("profile 'p'", 0, None, "nvml", [other()])
    check_neighbours("profile 'p'", 0, (0, 1), "sim", [other("sim")])
    check_neighbours("profile 'p'", 8000, (0, 1), "nvml", [])
