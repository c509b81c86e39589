"""How the stand-in starts, fails and ends, seen from outside the process."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from typing import Any

import pytest

from tests.fakes.stub_server import READY, WAIT_S, StubServer

TP4 = ("--tensor-parallel-size", "4")
LOADING = "Initializing a V1 LLM engine"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Reader:
    """Reads a stream in the background, so that a test can see how it ended."""

    def __init__(self, server: StubServer) -> None:
        self.events: list[Any] = []
        self.began = threading.Event()
        self._server = server
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        assert self.began.wait(WAIT_S)

    def rest(self) -> list[Any]:
        """All events, once the stream has ended."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        return self.events

    def _read(self) -> None:
        with self._server.stream(max_tokens=4000, ignore_eos=True) as stream:
            for event in stream:
                self.events.append(event)
                self.began.set()


# -- start-up ----------------------------------------------------------------------------------


def test_the_port_is_taken_and_refuses_until_the_server_is_ready() -> None:
    port = free_port()
    with StubServer("--port", str(port), "--sim-startup", "1.5") as server:
        server.wait_for_line(LOADING)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1).close()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        server.wait_until_ready()
        assert server.ask("GET", "/health") == (200, b"")


def test_the_stages_come_in_vllms_order() -> None:
    with StubServer(*TP4, "--max-model-len", "4096", "--some-flag", "x") as server:
        text = server.wait_until_ready().text
    stages = [
        "version 0.33.0",
        "non-default args: {'model_tag': 'simulated-32b'",
        "Resolved architecture:",
        "Using max model len 4096",
        LOADING,
        "vLLM is using nccl==",
        "rank 0 in world size 4 is assigned as DP rank 0",
        "Starting to load model simulated-32b...",
        "Loading safetensors checkpoint shards:   0% Completed | 0/17",
        "Loading safetensors checkpoint shards: 100% Completed | 17/17",
        "Loading weights took",
        "Model loading took 15.25 GiB memory",
        "torch.compile took",
        "Available KV cache memory:",
        "GPU KV cache size: 851,968 tokens, Maximum concurrency for 4,096 tokens per request: "
        "208.00x",
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%",
        "Graph capturing finished",
        "init engine (profile, create kv cache, warmup model) took",
        "Starting vLLM server on http://127.0.0.1:",
        "Route: /v1/chat/completions, Methods: POST",
        "INFO:     Started server process [",
        READY,
    ]
    places = [text.find(stage) for stage in stages]
    assert -1 not in places
    assert places == sorted(places)


def test_records_have_vllms_form_and_name_their_process() -> None:
    record = re.compile(
        r"^\((APIServer|EngineCore|Worker|Worker_TP[0-3]) pid=\d+\) (INFO|WARNING) "
        r"\d\d-\d\d \d\d:\d\d:\d\d \[\w+\.py:\d+\] "
    )
    bare = ("INFO:     ", "Loading safetensors checkpoint shards:", "\rCapturing CUDA graphs")
    with StubServer(*TP4) as server:
        lines = server.wait_until_ready().lines
        assert any(f"(APIServer pid={server.process.pid})" in line for line in lines)
    names = set()
    for line in lines:
        match = record.match(line)
        if match is None:
            assert line == "" or line.startswith(bare)
        else:
            names.add(match[1])
    assert len(names) == 7


def test_the_engine_is_a_child_with_vllms_title_in_the_same_session() -> None:
    with StubServer() as server:
        server.wait_until_ready()
        engine, *others = (
            process for process in server.session() if process.pid != server.process.pid
        )
        assert others == []
        assert engine.ppid() == server.process.pid
        assert engine.cmdline()[0] == "VLLM::EngineCore"
        assert f"(EngineCore pid={engine.pid})" in server.text


def test_a_taken_port_ends_the_start_with_an_error() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with StubServer("--port", str(port)) as server:
            assert server.process.wait(WAIT_S) == 1
            server.wait_for_line("OSError: [Errno 98] Address already in use")


def test_more_ranks_than_cards_end_the_start_with_an_error() -> None:
    with StubServer("--sim-gpus", "2", "-tp", "4") as server:
        assert server.process.wait(WAIT_S) == 1
        server.wait_for_line("World size (4) is larger than the number of available GPUs (2)")


# -- signals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_its_engine_and_its_streams(number: int) -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        reader = Reader(server)
        began = time.monotonic()
        assert server.stop(number) == 0
        assert time.monotonic() - began < 5
        assert server.session() == []
        *_, last, done = reader.rest()
        assert last["choices"][0]["finish_reason"] == "abort"
        assert done == "[DONE]"
        server.wait_for_line("[shutdown] API server: shutdown triggered")
        server.wait_for_line("Application shutdown complete.")


def test_open_requests_may_finish_and_new_ones_are_refused_while_it_drains() -> None:
    with StubServer("--shutdown-timeout", "20") as server:
        server.wait_until_ready()
        with server.stream(max_tokens=60, ignore_eos=True) as stream:
            events = iter(stream)
            next(events)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_line("mode=drain")
            assert server.ask("GET", "/health")[0] == 200
            status, answer = server.ask("POST", "/v1/completions", {"prompt": "x"})
            assert status == 500
            assert "cannot schedule new futures" in answer["error"]["message"]
            *_, last, done = events
        assert last["choices"][0]["finish_reason"] == "length"
        assert done == "[DONE]"
        assert server.process.wait(WAIT_S) == 0


def test_while_loading_sigterm_is_swallowed_and_sigint_ends_it() -> None:
    with StubServer("--sim-startup", "1.5") as server:
        server.wait_for_line(LOADING)
        server.process.send_signal(signal.SIGTERM)
        server.wait_until_ready()
        assert server.stop() == 0
    with StubServer("--sim-startup", "5") as server:
        server.wait_for_line(LOADING)
        assert server.stop(signal.SIGINT) == -signal.SIGINT
        assert server.session() == []


def test_killing_the_server_alone_leaves_the_engine_as_vllm_does() -> None:
    with StubServer() as server:
        server.wait_until_ready()
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        assert [process.cmdline()[0] for process in server.session()] == ["VLLM::EngineCore"]
        os.killpg(server.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + WAIT_S
        while server.session():
            assert time.monotonic() < deadline, "the engine outlived a signal to its group"
            time.sleep(0.02)


# -- faults ------------------------------------------------------------------------------------


def inject(server: StubServer, fault: str, gpu: int | None = None) -> None:
    body: dict[str, object] = {"fault": fault}
    if gpu is not None:
        body["gpu"] = gpu
    assert server.ask("POST", "/sim/fault", body) == (200, {"fault": fault})


def assert_ended_in_error(events: list[Any]) -> None:
    *_, error, done = events
    assert error["error"]["type"] == "InternalServerError"
    assert error["error"]["code"] == 500
    assert done == "[DONE]"


def assert_answers_with_errors(server: StubServer) -> None:
    assert server.ask("GET", "/health")[0] == 503
    status, answer = server.ask("POST", "/v1/completions", {"prompt": "x"})
    assert status == 500
    assert "EngineCore encountered an issue" in answer["error"]["message"]


def test_a_crash_names_the_worker_and_ends_with_1() -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        reader = Reader(server)
        inject(server, "crash", gpu=1)
        assert server.process.wait(WAIT_S) == 1
        assert_ended_in_error(reader.rest())
        assert server.session() == []
        cause = server.wait_for_line("Worker proc VllmWorker-1 died unexpectedly (exit code: -9)")
        follow_on = server.wait_for_line("Error in completion stream generator.")
        assert server.lines.index(cause) < server.lines.index(follow_on)
        server.wait_for_line("EngineDeadError: EngineCore encountered an issue.")


def test_a_frozen_worker_stops_the_streams_and_nothing_else() -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        reader = Reader(server)
        inject(server, "freeze", gpu=3)
        got = len(reader.events)
        time.sleep(0.5)
        assert len(reader.events) <= got + 1
        assert server.ask("GET", "/health")[0] == 200
        cards = [card["sample"] for card in server.ask("GET", "/sim/gpus")[1]["gpus"]]
        utilization = [card["utilization_percent"] for card in cards]
        assert min(utilization[:3]) > 80 > utilization[3]
        assert "ERROR" not in server.text
        frozen_at = len(reader.events)
        inject(server, "unfreeze")
        deadline = time.monotonic() + WAIT_S
        while len(reader.events) < frozen_at + 5:
            assert time.monotonic() < deadline, "no token after the freeze"
            time.sleep(0.02)
        server.stop()
        reader.rest()


def test_an_nccl_timeout_prints_the_watchdogs_line_and_ends_with_0() -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        reader = Reader(server)
        inject(server, "nccl_timeout", gpu=2)
        assert_ended_in_error(reader.rest())
        assert_answers_with_errors(server)
        assert server.process.wait(WAIT_S) == 0
        line = server.wait_for_line("Watchdog caught collective operation timeout: WorkNCCL(")
        assert re.match(r"\[rank0\]:\[E\d{4} \d\d:\d\d:\d\d\.\d{9} ProcessGroupNCCL\.cpp:", line)
        assert "[rank2]" not in server.text
        server.wait_for_line("Worker proc VllmWorker-0 died unexpectedly (exit code: -6)")


def test_a_lost_card_reads_nothing_and_takes_the_engine_with_it() -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        inject(server, "lose_gpu", gpu=3)
        server.wait_for_line("NVRM: Xid (PCI:0000:04:00): 79")
        cards = server.ask("GET", "/sim/gpus")[1]["gpus"]
        assert [card["lost"] for card in cards] == [False, False, False, True]
        assert cards[3]["sample"] == {"gpu": 3}
        assert_answers_with_errors(server)
        server.wait_for_line("(Worker_TP3 pid=")
        assert server.stop() == 0


def test_a_lost_card_that_nobody_uses_costs_nothing() -> None:
    with StubServer("--tensor-parallel-size", "2") as server:
        server.wait_until_ready()
        inject(server, "lose_gpu", gpu=3)
        assert server.ask("GET", "/sim/gpus")[1]["gpus"][3]["lost"]
        assert server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2})[0] == 200


def test_an_engine_that_is_killed_is_noticed() -> None:
    with StubServer(*TP4) as server:
        server.wait_until_ready()
        reader = Reader(server)
        engine = next(p for p in server.session() if p.pid != server.process.pid)
        engine.kill()
        assert_ended_in_error(reader.rest())
        server.wait_for_line("engine core exited unexpectedly")
        assert_answers_with_errors(server)
        assert server.stop() == 0


def test_a_fault_can_come_by_itself() -> None:
    with StubServer(*TP4, "--sim-fault", "crash@0.3") as server:
        server.wait_until_ready()
        assert server.process.wait(WAIT_S) == 1
        server.wait_for_line("Worker proc VllmWorker-2 died unexpectedly")


@pytest.mark.parametrize(
    "body", [b"", b"[]", {"fault": "melt"}, {"fault": "freeze", "gpu": 9}, {"gpu": 1}]
)
def test_an_unknown_fault_is_refused(body: object) -> None:
    with StubServer() as server:
        server.wait_until_ready()
        status, answer = server.ask("POST", "/sim/fault", body)
        assert status == 400
        assert "crash, freeze, unfreeze, nccl_timeout, lose_gpu" in answer["error"]


# -- the log while it runs ---------------------------------------------------------------------


def test_the_statistics_line_comes_while_tokens_flow_and_once_after() -> None:
    environment = {"VLLM_LOG_STATS_INTERVAL": "0.2"}
    with StubServer(environment=environment) as server:
        server.wait_until_ready()
        server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 40})
        line = server.wait_for_line("Engine 000: Avg prompt throughput:")
        numbers = re.search(r"generation throughput: ([\d.]+) tokens/s, Running: (\d+) reqs", line)
        assert numbers is not None
        assert float(numbers[1]) > 20
        server.wait_for_line("generation throughput: 0.0 tokens/s, Running: 0 reqs")
        said = server.text.count("Engine 000:")
        time.sleep(0.6)
        assert server.text.count("Engine 000:") == said


def test_chatter_comes_at_the_rate_that_was_asked_for() -> None:
    with StubServer(*TP4, "--sim-log-rate", "10000") as server:
        server.wait_until_ready()
        server.wait_for_line("step 0:")
        began = time.monotonic()
        server.wait_for_line("step 10000:")
        assert time.monotonic() - began > 0.9
        assert server.ask("GET", "/health")[0] == 200
