"""What the workers ask, when, and how often, as a server sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.load.driver import FinishedStep, LoadDriver
from gpu_dash.load.trace import with_trace
from gpu_dash.model.events import Event, RequestsEnded
from gpu_dash.model.headers import Headers
from gpu_dash.model.load import Arrival, Endpoint, LoadPlan, Outcome, RequestRecord, Target
from gpu_dash.model.token_spread import parse_token_spread
from tests.fakes.llm_server import LlmServer, llm_server

PATIENCE_S = 15.0
PLAN = LoadPlan(ramp=(2,), requests=6, warmup_s=0.0, output_tokens=2, prompt_tokens=8, seed=5)


class Rig:
    """A driver, the server it loads, and what came out."""

    def __init__(self, server: LlmServer, workers: int) -> None:
        self.server = server
        self.records: list[RequestRecord] = []
        self.steps: list[FinishedStep] = []
        self.driver = LoadDriver(self._take, self.steps.append, workers=workers)

    def _take(self, event: Event) -> None:
        if isinstance(event, RequestsEnded):
            self.records += event.requests

    async def run(self, plan: LoadPlan) -> None:
        self.driver.start_ramp(plan)
        async with asyncio.timeout(PATIENCE_S):
            await self.driver.finished()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [arrived.body for arrived in self.server.arrived]


@asynccontextmanager
async def rig(workers: int = 1, target: Target | None = None) -> AsyncIterator[Rig]:
    async with llm_server() as server:
        made = Rig(server, workers)
        to = target or Target(base_url="", model="m")
        made.driver.set_target(
            Target(
                base_url=server.url,
                model=to.model,
                api_key=to.api_key,
                headers=to.headers,
            )
        )
        try:
            await made.driver.start()
            yield made
        finally:
            await made.driver.close()


async def sent(plan: LoadPlan, workers: int) -> tuple[list[str], list[float]]:
    """The bodies, and the moments at which they were due, from the first on."""
    async with rig(workers) as r:
        await r.run(plan)
        due = sorted(record.scheduled for record in r.records)
        return sorted(json.dumps(body) for body in r.bodies), [at - due[0] for at in due]


@pytest.mark.parametrize(
    "plan",
    [
        LoadPlan(ramp=(3, 5), requests=21, output_tokens=1, prompt_tokens=16, seed=7),
        LoadPlan(
            rates=(200.0, 300.0), requests=25, output_tokens=1, prompt_tokens=16, seed=7,
            output_spread=parse_token_spread("uniform:1,9"), arrival=Arrival.GAMMA,
        ),
    ],
    ids=["closed", "open"],
)  # fmt: skip
async def test_a_seed_sends_the_same_whatever_the_number_of_processes(plan: LoadPlan) -> None:
    bodies, due = await sent(plan, 1)
    again, due_again = await sent(plan, 2)
    assert bodies == again
    assert len(set(bodies)) == 2 * (plan.requests or 0)
    if plan.rates:
        steps = plan.requests or 0
        # the second step begins when the first has ended, which is up to the server
        assert due[:steps] == pytest.approx(due_again[:steps], abs=1e-6)
        later, later_again = due[steps:], due_again[steps:]
        assert [at - later[0] for at in later] == pytest.approx(
            [at - later_again[0] for at in later_again], abs=1e-6
        )


async def test_without_a_seed_no_two_sessions_ask_the_same() -> None:
    plan = LoadPlan(ramp=(1,), requests=3, output_tokens=1, prompt_tokens=16)
    one, _ = await sent(plan, 2)
    other, _ = await sent(plan, 2)
    assert not set(one) & set(other)


async def test_a_conversation_holds_the_answers_before_it(tmp_path: Path) -> None:
    plan = LoadPlan(
        ramp=(2,), requests=8, endpoint=Endpoint.CHAT, turns=3, output_tokens=2, prompt_tokens=5,
        seed=3,
    )  # fmt: skip
    async with rig() as r:
        await r.run(plan)
        assert [record.outcome for record in r.records] == [Outcome.OK] * 8
        by_conversation: dict[int | None, list[RequestRecord]] = {}
        for record in sorted(r.records, key=lambda record: record.sent):
            by_conversation.setdefault(record.conversation, []).append(record)
        assert sorted(len(turns) for turns in by_conversation.values()) in ([2, 3, 3], [1, 1, 3, 3])
        for number, turns in by_conversation.items():
            assert [record.turn for record in turns] == list(range(1, len(turns) + 1))
            assert turns[0].request == number
        longest = max((body["messages"] for body in r.bodies), key=len)
        assert [message["role"] for message in longest] == ["user", "assistant"] * 2 + ["user"]
        assert {m["content"] for m in longest if m["role"] == "assistant"} == {" a a"}
        said = [message["content"] for message in longest if message["role"] == "user"]
        assert len(set(said)) == 3
        assert any(body["messages"] == longest[:3] for body in r.bodies)


async def test_a_conversation_whose_turn_failed_does_not_go_on() -> None:
    plan = LoadPlan(ramp=(1,), requests=3, endpoint=Endpoint.CHAT, turns=9, output_tokens=4, seed=3)
    async with rig() as r:
        r.server.failure = "disconnect"
        await r.run(plan)
        assert [record.turn for record in r.records] == [1, 1, 1]
        assert {len(body["messages"]) for body in r.bodies} == {1}


async def test_a_person_of_a_file_says_no_more_than_stands_there(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    talk = [{"role": "user", "content": text} for text in ("one", "two")]
    file.write_text(json.dumps({"messages": talk}))
    plan = LoadPlan(
        ramp=(1,), requests=4, endpoint=Endpoint.CHAT, turns=9, output_tokens=1, dataset=str(file)
    )
    async with rig() as r:
        await r.run(plan)
        last = [body["messages"][-1]["content"] for body in r.bodies]
        assert last == ["one", "two", "one", "two"]
        assert [record.turn for record in r.records] == [1, 2, 1, 2]


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_trace_is_replayed_when_it_says_and_asks_what_it_says(
    workers: int, tmp_path: Path
) -> None:
    file = tmp_path / "trace.jsonl"
    moments = (0, 40, 40, 400, 600)
    file.write_text(
        "".join(
            json.dumps({"timestamp": 9000 + at, "input_length": 600 + n, "output_length": n + 1,
                        "hash_ids": [8, n]}) + "\n"
            for n, at in enumerate(moments)
        )
    )  # fmt: skip
    plan = with_trace(LoadPlan(trace=str(file), trace_speed=2.0, warmup_s=30.0, seed=1))
    async with rig(workers) as r:
        await r.run(plan)
        records = sorted(r.records, key=lambda record: record.scheduled)
        first = records[0].scheduled
        assert [x.scheduled - first for x in records] == pytest.approx([0, 0.02, 0.02, 0.2, 0.3])
        assert all(x.counted and x.outcome is Outcome.OK for x in records)
        asked = sorted(r.bodies, key=lambda body: body["max_tokens"])
        assert [body["max_tokens"] for body in asked] == [1, 2, 3, 4, 5]
        assert [len(body["prompt"]) for body in asked] == [600, 601, 602, 603, 604]
        assert len({tuple(body["prompt"][:512]) for body in asked}) == 1
        assert len({tuple(body["prompt"][512:540]) for body in asked}) == 5
        (step,) = r.steps
        assert (step.concurrency, step.request_rate) == (None, plan.rates[0])


async def test_a_file_gives_each_prompt_once_to_all_the_workers(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"p{n}"}) + "\n" for n in range(24)))
    async with rig(workers=3) as r:
        await r.run(LoadPlan(ramp=(4, 6), requests=12, output_tokens=1, dataset=str(file)))
        assert sorted(body["prompt"] for body in r.bodies) == sorted(f"p{n}" for n in range(24))


async def test_what_is_refused_before_its_first_token_is_sent_again_and_counted() -> None:
    async with rig() as r:
        r.server.busy = 3
        await r.run(LoadPlan(ramp=(1,), requests=2, output_tokens=2, retries=2, prompt="x"))
        given_up, taken = sorted(r.records, key=lambda record: record.request)
        assert (given_up.outcome, given_up.retries) == (Outcome.OVERLOADED, 2)
        assert given_up.detail.startswith("after 2 × overloaded; HTTP 503 come bye")
        assert (taken.outcome, taken.retries) == (Outcome.OK, 0)
        assert len(r.bodies) == 4
        assert r.bodies[0] == r.bodies[1] == r.bodies[2]


async def test_the_latency_of_a_second_attempt_counts_from_the_first() -> None:
    async with rig() as r:
        r.server.busy = 1
        await r.run(LoadPlan(ramp=(1,), requests=1, output_tokens=2, retries=1, prompt="x"))
        (record,) = r.records
        assert (record.outcome, record.retries) == (Outcome.OK, 1)
        assert record.detail == "after 1 × overloaded"
        first, second = r.server.arrived
        assert record.ttft_s is not None
        assert record.ttft_s > second.at - first.at > 0.09
        assert record.sent <= first.at


async def test_retries_are_off_by_default_and_never_after_a_token() -> None:
    async with rig() as r:
        r.server.busy = 1
        await r.run(LoadPlan(ramp=(1,), requests=1, output_tokens=2, prompt="x"))
        r.server.failure = "disconnect"
        await r.run(LoadPlan(ramp=(1,), requests=1, output_tokens=4, prompt="x", retries=5))
        assert [record.outcome for record in r.records] == [
            Outcome.OVERLOADED,
            Outcome.DISCONNECTED,
        ]
        assert len(r.bodies) == 2


async def test_a_stop_does_not_wait_for_a_retry() -> None:
    async with rig() as r:
        r.server.busy = 10**6
        r.driver.offer(LoadPlan(retries=50, prompt="x"))
        r.driver.set_concurrency(3)
        async with asyncio.timeout(PATIENCE_S):
            while len(r.bodies) < 12:  # the waits have grown
                await asyncio.sleep(0.01)
            await r.driver.stop()
        assert {record.outcome for record in r.records} <= {Outcome.OVERLOADED, Outcome.CANCELLED}
        assert len(r.records) >= 3


async def test_headers_are_sent_and_a_secret_one_is_not_repeated() -> None:
    target = Target(
        base_url="",
        model="m",
        headers=Headers(
            plain=(("X-Tenant", "blue"),),
            secret=(("X-Api-Key", "s3cret-of-ours"), ("Authorization", "Basic abcdefgh")),
        ),
    )
    async with rig(target=target) as r:
        r.server.failure = "unauthorized"
        await r.run(LoadPlan(ramp=(1,), requests=1, prompt="x"))
        headers = r.server.arrived[0].headers
        assert (headers["x-tenant"], headers["x-api-key"]) == ("blue", "s3cret-of-ours")
        (record,) = r.records
        assert record.outcome is Outcome.UNAUTHORIZED
        assert "abcdefgh" not in record.detail
        assert "no such key: [key]" in record.detail
