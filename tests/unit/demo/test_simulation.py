"""The engine in real time: steps take their time, freezes hold, and the dead answer nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from gpu_dash.demo.engine import Capacity, Engine, Job
from gpu_dash.demo.rack import Rack, card_specs
from gpu_dash.demo.simulation import EngineState, Simulation
from tests.unit.demo.virtual_time import Ear, request

STEP_S = 0.01
QUICK = Capacity(step_base_s=STEP_S, step_per_sequence_s=0, step_per_prompt_token_s=0)


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    rack = Rack(card_specs(2, hot_gpu=None, time_scale=1.0), 2)
    running = Simulation(Engine(QUICK), rack, asyncio.get_running_loop())
    yield running
    running.close()


def ear(job: Job) -> Ear:
    assert isinstance(job.listener, Ear)
    return job.listener


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(STEP_S / 4)


async def test_a_request_takes_as_long_as_its_steps(simulation: Simulation) -> None:
    job = request(output_tokens=20)
    began = time.monotonic()
    simulation.submit(job)
    await until(lambda: job.finish_reason is not None)
    assert time.monotonic() - began > 0.95 * 20 * STEP_S
    assert ear(job).tokens == 20


async def test_a_pause_before_a_request_makes_it_no_faster(simulation: Simulation) -> None:
    first = request(output_tokens=1)
    simulation.submit(first)
    await until(lambda: first.finish_reason is not None)
    await asyncio.sleep(10 * STEP_S)
    began = time.monotonic()
    second = request(output_tokens=5)
    simulation.submit(second)
    await until(lambda: second.finish_reason is not None)
    assert time.monotonic() - began > 0.95 * 5 * STEP_S


async def test_time_lost_on_a_busy_host_is_caught_up(simulation: Simulation) -> None:
    job = request(output_tokens=30)
    began = time.monotonic()
    simulation.submit(job)
    await until(lambda: job.generated == 3)
    time.sleep(10 * STEP_S)  # noqa: ASYNC251 - the loop is to be held up
    await until(lambda: job.finish_reason is not None)
    assert time.monotonic() - began < 38 * STEP_S


async def test_a_frozen_engine_makes_no_token_until_it_goes_on(simulation: Simulation) -> None:
    running = request(output_tokens=50)
    simulation.submit(running)
    await until(lambda: running.generated > 2)
    simulation.freeze(stuck_gpu=1)
    later = request()
    simulation.submit(later)
    made = running.generated
    await asyncio.sleep(20 * STEP_S)
    assert (running.generated, later.generated) == (made, 0)
    simulation.unfreeze()
    await until(lambda: running.finish_reason is not None and later.generated > 0)


async def test_a_request_to_a_frozen_engine_runs_and_gets_nothing(simulation: Simulation) -> None:
    simulation.freeze(stuck_gpu=0)
    job = request()
    simulation.submit(job)
    assert simulation.engine.running == [job]
    await asyncio.sleep(5 * STEP_S)
    assert ear(job).tokens == 0
    simulation.unfreeze()
    await until(lambda: ear(job).tokens > 0)


async def test_the_dead_engine_fails_what_was_open(simulation: Simulation) -> None:
    job = request()
    simulation.submit(job)
    await until(lambda: job.generated > 2)
    assert simulation.die("it is over") == 1
    assert simulation.state is EngineState.DEAD
    made = ear(job).tokens
    assert ear(job).errors == ["it is over"]
    simulation.unfreeze()
    await asyncio.sleep(5 * STEP_S)
    assert ear(job).tokens == made


async def test_a_stop_tells_every_client_once(simulation: Simulation) -> None:
    jobs = [request(), request()]
    for job in jobs:
        simulation.submit(job)
    await until(lambda: jobs[1].generated > 0)
    simulation.abort_all()
    assert [ear(job).errors for job in jobs] == [["aborted"], ["aborted"]]
    assert simulation.engine.idle


async def test_the_cards_cool_while_nobody_asks_anything(simulation: Simulation) -> None:
    job = request(output_tokens=30)
    simulation.submit(job)
    await until(lambda: job.finish_reason is not None)
    warm = simulation.rack.cards[0].power_watts
    assert warm > 150
    await until(lambda: simulation.rack.cards[0].power_watts < 120)
