"""The stand-in's HTTP surface, as a client of vLLM's meets it."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.stub_server import WAIT_S, StubServer, exchange

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    flags = ("--tensor-parallel-size", "4", "--max-num-seqs", "2", "--max-model-len", "2048")
    with StubServer(*flags) as running:
        yield running.wait_until_ready()
        assert running.stop(signal.SIGTERM) == 0


def metric(server: StubServer, name: str, **labels: str) -> float:
    _, page = server.ask("GET", "/metrics")
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    raise AssertionError(f"no {name} {labels} on the page")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk["choices"][0]["text"] for chunk in chunks)


def test_health_version_and_model(server: StubServer) -> None:
    assert server.ask("GET", "/health") == (200, b"")
    assert server.ask("GET", "/version") == (200, {"version": "0.33.0"})
    status, models = server.ask("GET", "/v1/models")
    assert status == 200
    assert len(models["data"]) == 1
    entry = models["data"][0]
    assert (entry["id"], entry["root"]) == ("simulated-32b", "simulated-32b")
    assert entry["max_model_len"] == 2048


def test_a_chat_stream_has_role_tokens_usage_and_an_end(server: StubServer) -> None:
    fields = {"messages": MESSAGES, "max_tokens": 5, "stream_options": {"include_usage": True}}
    with server.stream(CHAT, **fields) as stream:
        assert stream.status == 200
        assert stream.content_type == "text/event-stream; charset=utf-8"
        role, *tokens, usage, done = stream
    assert role["object"] == "chat.completion.chunk"
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(tokens) == 5
    assert all(chunk["choices"][0]["delta"]["content"] for chunk in tokens)
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in tokens]
    assert reasons == [None, None, None, None, "length"]
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 6, "total_tokens": 11, "completion_tokens": 5}
    assert done == "[DONE]"
    assert len({chunk["id"] for chunk in (role, *tokens, usage)}) == 1


def test_a_completion_stream_without_usage_has_only_tokens(server: StubServer) -> None:
    with server.stream(max_tokens=3) as stream:
        *chunks, done = stream
    assert done == "[DONE]"
    assert len(chunks) == 3
    assert not any("usage" in chunk for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_usage_can_be_in_every_chunk(server: StubServer) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    with server.stream(max_tokens=3, stream_options=options) as stream:
        *chunks, last, _ = stream
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 2, 3]
    assert last["usage"]["completion_tokens"] == 3


def test_an_answer_may_end_by_itself(server: StubServer) -> None:
    status, answer = server.ask("POST", COMPLETIONS, {"prompt": "x", "max_tokens": 400})
    assert status == 200
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert 64 <= answer["usage"]["completion_tokens"] <= 192


def test_a_whole_answer_says_what_the_stream_said(server: StubServer) -> None:
    status, whole = server.ask("POST", COMPLETIONS, {"prompt": [1, 2, 3], "max_tokens": 6})
    assert status == 200
    assert whole["object"] == "text_completion"
    assert whole["usage"] == {"prompt_tokens": 3, "total_tokens": 9, "completion_tokens": 6}
    with server.stream(max_tokens=6) as stream:
        *chunks, _ = stream
    assert whole["choices"][0]["text"] == text_of(chunks)
    _, chat = server.ask("POST", CHAT, {"messages": MESSAGES, "max_tokens": 6})
    assert chat["object"] == "chat.completion"
    assert chat["choices"][0]["message"] == {"role": "assistant", "content": text_of(chunks)}


def test_tokens_come_one_by_one_and_not_at_the_end(server: StubServer) -> None:
    with server.stream(max_tokens=20) as stream:
        moments = [time.monotonic() for _ in stream]
    assert moments[-2] - moments[0] > 19 * 0.010


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "answer"),
    [
        ("GET", "/nowhere", None, 404, {"detail": "Not Found"}),
        ("GET", COMPLETIONS, None, 405, {"detail": "Method Not Allowed"}),
        (
            "POST",
            CHAT,
            {"model": "nope", "messages": MESSAGES},
            404,
            {
                "error": {
                    "message": "The model `nope` does not exist. Valid aliases: simulated-32b.",
                    "type": "NotFoundError",
                    "param": "model",
                    "code": 404,
                }
            },
        ),
    ],
)
def test_refusals_have_their_bodies(
    server: StubServer, method: str, path: str, body: object, status: int, answer: object
) -> None:
    assert server.ask(method, path, body) == (status, answer)


@pytest.mark.parametrize("body", [b'{"prompt": ', {"prompt": [1] * 3000}, {"prompt": None}])
def test_bad_bodies_are_400(server: StubServer, body: object) -> None:
    status, answer = server.ask("POST", COMPLETIONS, body)
    assert status == 400
    assert answer["error"]["code"] == 400


def test_a_client_that_leaves_frees_its_place(server: StubServer) -> None:
    aborted = metric(server, "vllm:request_success_total", finished_reason="abort")
    with server.stream(max_tokens=2000, ignore_eos=True) as stream:
        next(iter(stream))
        assert metric(server, "vllm:num_requests_running") == 1
    wait_until(lambda: metric(server, "vllm:num_requests_running") == 0)
    after = metric(server, "vllm:request_success_total", finished_reason="abort")
    assert after == aborted + 1


def test_a_third_request_waits_for_one_of_two_places(server: StubServer) -> None:
    with (
        server.stream(max_tokens=2000, ignore_eos=True) as first,
        server.stream(max_tokens=2000, ignore_eos=True) as second,
    ):
        next(iter(first))
        next(iter(second))
        with server.stream(max_tokens=2) as third:
            wait_until(lambda: metric(server, "vllm:num_requests_waiting") == 1)
            assert third.is_silent_for(0.2)
    wait_until(lambda: metric(server, "vllm:num_requests_waiting") == 0)


def test_the_metrics_follow_the_requests(server: StubServer) -> None:
    names = (
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:iteration_tokens_total_count",
        "vllm:time_to_first_token_seconds_count",
        "vllm:inter_token_latency_seconds_count",
        "vllm:e2e_request_latency_seconds_count",
    )
    before = {name: metric(server, name) for name in names}
    answers = metric(server, "http_requests_total", handler=COMPLETIONS, status="2xx")
    server.ask("POST", COMPLETIONS, {"prompt": [1] * 50, "max_tokens": 10})
    gained = {name: metric(server, name) - before[name] for name in names}
    assert list(gained.values()) == [50, 10, 10, 1, 9, 1]
    after = metric(server, "http_requests_total", handler=COMPLETIONS, status="2xx")
    assert after == answers + 1


def test_one_connection_serves_many_requests(server: StubServer) -> None:
    with server.connection() as connection:
        for _ in range(3):
            body = {"prompt": "x", "max_tokens": 1}
            assert exchange(connection, "POST", COMPLETIONS, body)[0] == 200
        assert exchange(connection, "GET", "/health") == (200, b"")


def test_load_heats_the_cards_whether_or_not_somebody_looks(server: StubServer) -> None:
    def first_card() -> Any:
        return server.ask("GET", "/sim/gpus")[1]["gpus"][0]["sample"]

    wait_until(lambda: first_card()["power_watts"] < 120)
    idle = first_card()
    with server.stream(max_tokens=2000, ignore_eos=True) as stream:
        events = iter(stream)
        for _ in range(80):
            next(events)
        busy = first_card()
    assert busy["power_watts"] > idle["power_watts"] + 100
    assert busy["utilization_percent"] > 90
    assert busy["energy_joules"] - idle["energy_joules"] > 200


def test_many_streams_at_once_get_all_their_tokens() -> None:
    streams = 200
    flags = ("--tensor-parallel-size", "4", "--max-num-seqs", "512")
    body = b'{"prompt": [1], "max_tokens": 8, "stream": true}'
    head = (
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with StubServer(*flags) as server:
        server.wait_until_ready()
        address = ("127.0.0.1", server.port)
        clients = [socket.create_connection(address, WAIT_S) for _ in range(streams)]
        for client in clients:
            client.sendall(head.encode() + body)
        for client in clients:
            with client, client.makefile("rb") as answer:
                text = answer.read()
            assert text.count(b'"text"') == 8
            assert text.count(b"[DONE]") == 1


def test_a_key_is_asked_for_where_vllm_asks_for_it() -> None:
    with StubServer(environment={"VLLM_API_KEY": "secret"}) as server:
        server.wait_until_ready()
        for headers in ({}, {"authorization": "Bearer wrong"}):
            answer = server.ask("GET", "/v1/models", headers=headers)
            assert answer == (401, {"error": "Unauthorized"})
        right = {"authorization": "Bearer secret"}
        assert server.ask("GET", "/v1/models", headers=right)[0] == 200
        assert server.ask("GET", "/health")[0] == 200
        assert server.ask("GET", "/metrics")[0] == 200
        assert "secret" not in server.text


def test_the_access_log_leaves_out_what_it_is_told_to() -> None:
    with StubServer("--disable-access-log-for-endpoints", "/health,/metrics") as server:
        server.wait_until_ready()
        for path in ("/health", "/metrics", "/sim/gpus", "/v1/models"):
            server.ask("GET", path)
        server.ask("POST", COMPLETIONS, {"prompt": "x", "max_tokens": 1})
        server.wait_for_line('"POST /v1/completions HTTP/1.1" 200 OK')
        access = [line for line in server.lines if line.startswith("INFO:     127.0.0.1")]
        assert [line.split('"')[1] for line in access] == [
            "GET /v1/models HTTP/1.1",
            "POST /v1/completions HTTP/1.1",
        ]
