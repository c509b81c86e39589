"""When a server that failed is started again."""

from __future__ import annotations

from typing import Any

import msgspec

from gpu_dash.agent.restarts import RestartPolicy, RestartRecord
from gpu_dash.model.commands import Launch
from gpu_dash.model.profile import Profile, ServerProfile


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


def launch(**server: Any) -> Launch:
    profile = Profile(name="p", server=ServerProfile(model="m", **server))
    return Launch(profile=profile, environment={"HF_TOKEN": "secret"}, folder="/")


def test_what_the_next_agent_gets_holds_no_environment() -> None:
    command = launch(restarts=3, env={"TOKEN": "secret"})

    record = RestartRecord.of(command, RestartPolicy.of(command.profile, count=2))

    assert record is not None
    assert "secret" not in msgspec.json.encode(record).decode()
    again = record.command({"HF_TOKEN": "as the server has it"})
    assert again.environment == {"HF_TOKEN": "as the server has it"}
    assert RestartPolicy.of(record.profile, record.count).next_delay_s(0.0) == 20.0


def test_a_launch_that_is_never_repeated_leaves_nothing() -> None:
    command = launch()

    assert RestartRecord.of(command, RestartPolicy.of(command.profile)) is None
