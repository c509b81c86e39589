"""When a server that failed is started again."""

from __future__ import annotations

from gpu_dash.agent.restarts import RestartPolicy


def test_the_wait_doubles_and_a_crash_loop_ends() -> None:
    policy = RestartPolicy(limit=4, delay_s=5.0)

    assert [policy.next_delay_s(1.0) for _ in range(5)] == [5.0, 10.0, 20.0, 40.0, None]


def test_no_wait_is_longer_than_five_minutes() -> None:
    policy = RestartPolicy(limit=20, delay_s=60.0)

    assert [policy.next_delay_s(0.0) for _ in range(5)] == [60.0, 120.0, 240.0, 300.0, 300.0]


def test_a_server_that_ran_for_long_is_counted_anew() -> None:
    policy = RestartPolicy(limit=1, delay_s=5.0)

    assert policy.next_delay_s(0.0) == 5.0
    assert policy.next_delay_s(3600.0) == 5.0
    assert policy.next_delay_s(0.0) is None


def test_without_a_limit_nothing_is_started_again() -> None:
    assert RestartPolicy(limit=0, delay_s=5.0).next_delay_s(3600.0) is None
