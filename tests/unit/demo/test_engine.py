"""The capacity model: what concurrency, clock, prompts and the cache do to throughput."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpu_dash.demo.engine import Capacity, Engine, Job
from tests.unit.demo.virtual_time import ClosedLoop, Ear, request


def throughput(concurrency: int, *, clock_ratio: float = 1.0) -> float:
    loop = ClosedLoop(Engine(Capacity()), clock_ratio=clock_ratio)
    loop.run(concurrency, 5.0)
    return loop.run(concurrency, 20.0)


def ear(job: Job) -> Ear:
    assert isinstance(job.listener, Ear)
    return job.listener


def test_throughput_rises_with_concurrency_and_flattens() -> None:
    levels = [throughput(concurrency) for concurrency in (1, 4, 16, 64, 256)]
    gains = [after / before for before, after in pairwise(levels)]
    assert all(gain > 1 for gain in gains)
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 3.5
    assert gains[-1] < 1.6


@pytest.mark.parametrize(("concurrency", "low_ms", "high_ms"), [(1, 11.5, 12.5), (32, 18, 25)])
def test_the_gap_between_tokens_is_that_of_a_32b_model_on_four_cards(
    concurrency: int, low_ms: float, high_ms: float
) -> None:
    loop = ClosedLoop(Engine(Capacity()))
    loop.run(concurrency, 20.0)
    gaps = loop.engine.stats.inter_token_latency
    assert low_ms < 1000 * gaps.sum / gaps.count < high_ms


@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.8])
def test_throughput_falls_with_the_clock(ratio: float) -> None:
    assert throughput(16, clock_ratio=ratio) / throughput(16) == pytest.approx(ratio, rel=0.02)


def test_the_same_load_gives_the_same_result() -> None:
    assert throughput(8) == throughput(8)


def test_more_requests_than_slots_wait_and_their_first_token_with_them() -> None:
    engine = Engine(Capacity(max_num_seqs=2))
    loop = ClosedLoop(engine)
    jobs = [request(output_tokens=50) for _ in range(3)]
    for job in jobs:
        engine.submit(job, loop.now)
    loop.step()
    assert (len(engine.running), len(engine.waiting)) == (2, 1)
    while jobs[0].finish_reason is None:
        assert ear(jobs[2]).tokens == 0
        loop.step()
    first_end = loop.now
    while not engine.idle:
        loop.step()
    assert jobs[2].first_token is not None
    assert jobs[2].first_token > first_end
    assert engine.stats.request_queue_time.sum == pytest.approx(first_end)


def test_a_prompt_holds_up_the_streams_beside_it() -> None:
    engine = Engine(Capacity())
    loop = ClosedLoop(engine)
    engine.submit(request(), loop.now)
    loop.step()
    alone = engine.plan(loop.now, 1.0)
    assert alone is not None
    engine.submit(request(prompt_tokens=4096), loop.now)
    beside = engine.plan(loop.now, 1.0)
    assert beside is not None
    assert beside.duration_s > 5 * alone.duration_s


def test_a_prompt_longer_than_the_budget_takes_several_steps() -> None:
    engine = Engine(Capacity(max_num_batched_tokens=1000))
    loop = ClosedLoop(engine)
    job = request(prompt_tokens=2500, output_tokens=2)
    engine.submit(job, loop.now)
    assert [len(loop.step()) for _ in range(4)] == [0, 0, 1, 1]
    assert job.finish_reason == "length"
    assert engine.stats.prompt_tokens == 2500
    assert engine.stats.generation_tokens == 2


def test_streams_go_on_while_a_long_prompt_is_read() -> None:
    engine = Engine(Capacity(max_num_batched_tokens=1000))
    loop = ClosedLoop(engine)
    stream = request()
    engine.submit(stream, loop.now)
    loop.step()
    engine.submit(request(prompt_tokens=3000), loop.now)
    assert loop.step() == [stream]


@pytest.mark.parametrize("steps_before", [0, 1, 3])
def test_an_aborted_request_frees_its_place_and_gets_nothing_more(steps_before: int) -> None:
    engine = Engine(Capacity(max_num_seqs=1))
    loop = ClosedLoop(engine)
    leaving, staying = request(), request()
    engine.submit(leaving, loop.now)
    engine.submit(staying, loop.now)
    for _ in range(steps_before):
        loop.step()
    engine.abort(leaving, loop.now)
    generated = leaving.generated
    assert loop.step() == [staying]
    assert leaving.generated == generated
    assert leaving.finish_reason == "abort"
    assert engine.stats.finished["abort"] == 1


def test_an_abort_within_a_step_costs_only_that_request_its_token() -> None:
    engine = Engine(Capacity())
    leaving, staying = request(), request()
    engine.submit(leaving, 0.0)
    engine.submit(staying, 0.0)
    step = engine.plan(0.0, 1.0)
    assert step is not None
    engine.abort(leaving, 0.01)
    assert engine.finish(step, step.duration_s) == [staying]
    assert engine.running == [staying]


def test_a_full_cache_throws_the_youngest_request_back() -> None:
    engine = Engine(Capacity(kv_cache_tokens=1100))
    loop = ClosedLoop(engine)
    old, young = request(output_tokens=100), request(output_tokens=100)
    engine.submit(old, 0.0)
    engine.submit(young, 0.0)
    while not engine.stats.preemptions:
        loop.step()
        assert engine.kv_cache_usage <= 1
    assert engine.running == [old]
    assert list(engine.waiting) == [young]
    while not engine.idle:
        loop.step()
    assert (old.generated, young.generated) == (100, 100)
    assert engine.stats.generation_tokens == 200
    assert engine.stats.prompt_tokens == 1024


def test_an_idle_engine_plans_nothing() -> None:
    engine = Engine(Capacity())
    assert engine.plan(0.0, 1.0) is None
    engine.submit(request(output_tokens=1), 0.0)
    ClosedLoop(engine).step()
    assert engine.idle
    assert engine.plan(1.0, 1.0) is None
    assert engine.kv_cache_usage == 0


def test_a_dead_engine_gives_up_what_ran_and_what_waited() -> None:
    engine = Engine(Capacity(max_num_seqs=1))
    jobs = [request(), request()]
    for job in jobs:
        engine.submit(job, 0.0)
    ClosedLoop(engine).step()
    assert engine.drop_all() == jobs
    assert engine.idle
    assert engine.stats.finished["error"] == 2
