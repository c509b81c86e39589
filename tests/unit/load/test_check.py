"""Plans and targets that cannot be run are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_dash.load.check import check_plan, check_target
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import LoadPlan, Target


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ramp": ()}, "ramp: no step"),
        ({"ramp": (4, 0)}, "ramp: 0 is too small"),
        ({"output_tokens": 0}, "output tokens: 0"),
        ({"requests": 0}, "requests: 0"),
        ({"prompt_tokens": -1}, "prompt tokens: -1"),
        ({"step_s": 0.0}, "step: 0 s"),
        ({"step_s": float("nan")}, "step: nan s"),
        ({"timeout_s": -1.0}, "timeout: -1 s"),
        ({"stall_s": 0.0}, "stall timeout: 0 s"),
        ({"warmup_s": -0.5}, "warm-up: -0.5 s"),
    ],
)
def test_a_plan_out_of_range_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_plan(LoadPlan(**fields))


def test_plans_that_can_be_run() -> None:
    check_plan(LoadPlan())
    check_plan(LoadPlan(ramp=(1,), warmup_s=0, requests=1, prompt_tokens=1, output_tokens=1))


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://["]
)
def test_a_url_that_cannot_be_reached_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        check_target(Target(base_url=url, model="m"))


@pytest.mark.parametrize("key", ["sk-secret\n", "sk secret", "sk-sécret", "\x1bsecret"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UsageError, match="API key") as caught:
        check_target(Target(base_url="http://h", model="m", api_key=key))
    assert "secret" not in str(caught.value)
    assert "sécret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "https://h", "http://[::1]:8000/case"])
def test_targets_that_can_be_reached(url: str) -> None:
    check_target(Target(base_url=url, model="m", api_key="sk-1_2.3/4+5="))
