"""When a step says more about the client than about the server."""

from __future__ import annotations

import pytest

from gpu_dash.load.client_limit import ClientWatch, is_at_limit
from gpu_dash.load.protocol import Tick
from gpu_dash.model.histogram import bucket_of


def tick(
    at: float = 1.0,
    *,
    busiest_cpu_s: float = 0.05,
    loop_lag_s: float = 0.001,
    send_lags_s: tuple[float, ...] = (),
) -> Tick:
    return Tick(
        at=at,
        interval_s=0.25,
        in_flight=1,
        path="direct",
        cpu_s=busiest_cpu_s,
        busiest_cpu_s=busiest_cpu_s,
        loop_lag_s=loop_lag_s,
        send_lags={bucket_of(lag): 1 for lag in send_lags_s},
    )


@pytest.mark.parametrize(
    ("made", "limited"),
    [
        (tick(), False),
        (tick(busiest_cpu_s=0.19), False),
        (tick(busiest_cpu_s=0.21), True),
        (tick(loop_lag_s=0.019), False),
        (tick(loop_lag_s=0.021), True),
        (tick(send_lags_s=(0.001, 0.002)), False),
        (tick(send_lags_s=(0.001, 0.05)), True),
    ],
)
def test_what_a_client_says_about_itself_is_judged(made: Tick, limited: bool) -> None:
    assert is_at_limit(made) is limited
    assert ClientWatch().add(made) is limited


def test_a_step_is_bound_when_most_of_its_ticks_were() -> None:
    watch = ClientWatch()
    lags = [0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.5]
    for at, lag_s in enumerate(lags):
        watch.add(tick(float(at), loop_lag_s=lag_s))
    assert watch.was_bound(3.0, 6.0) is False  # two of four
    assert watch.was_bound(4.0, 6.0) is True
    assert watch.was_bound(7.0, 9.0) is False
    assert watch.was_bound(10.0, 20.0) is False  # nothing is known
