"""Simulated cards: read over HTTP from a server that comes and goes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gpu_dash.gpu.simulated import PATIENCE_S, SimulatedBackend
from gpu_dash.model.gpu import GpuVendor
from tests.fakes.clock import ManualClock


class Server:
    """A server of simulated cards whose answer the test sets."""

    def __init__(self) -> None:
        self.answer: Any = {"gpus": []}
        self.status = 200
        self.delay = threading.Event()
        self.delay.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.delay.wait(5)
                if isinstance(server.answer, bytes):
                    body = server.answer
                else:
                    body = json.dumps(server.answer).encode()
                self.send_response(server.status if self.path == "/sim/gpus" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *args: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self.delay.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


def card(gpu: int, *, lost: bool = False, **sample: Any) -> dict[str, Any]:
    return {
        "gpu": gpu,
        "name": "Simulated H100 80GB",
        "uuid": f"SIM-{gpu}",
        "pci_bus_id": f"0000:0{gpu + 1}:00.0",
        "limits": {
            "max_operating_temperature_celsius": 87,
            "slowdown_temperature_celsius": 89,
            "shutdown_temperature_celsius": 95,
            "power_limit_default_watts": 700,
            "sm_clock_max_mhz": 1980,
            "memory_clock_max_mhz": 2619,
            "memory_total_bytes": 85899345920,
        },
        "sample": {"temperature_celsius": 60, "energy_joules": 10, **sample},
        "lost": lost,
    }


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def opened(url: str | None, clock: ManualClock) -> SimulatedBackend:
    backend = SimulatedBackend(url, clock)
    backend.open()
    return backend


def test_before_any_server_there_are_idle_cards(clock: ManualClock) -> None:
    backend = opened(None, clock)
    samples = [reading.sample for reading in backend.sweep().readings]
    assert [info.name for info in backend.gpus] == ["Simulated H100 80GB"] * 4
    assert [sample.gpu for sample in samples] == [0, 1, 2, 3]
    assert {sample.utilization_percent for sample in samples} == {0.0}
    assert backend.detail == "idle cards; no server runs"


def test_a_servers_cards_are_read_with_their_limits(clock: ManualClock, server: Server) -> None:
    server.answer = {
        "gpus": [card(0, power_watts=650.5, throttle_reasons=["sw_thermal"], unknown_field=1)]
    }
    backend = opened(server.url, clock)
    (reading,) = backend.sweep().readings
    (info,) = backend.gpus
    assert info.vendor is GpuVendor.SIMULATED
    assert info.slowdown_temperature_celsius == 89
    assert reading.sample.power_watts == 650.5
    assert reading.sample.throttle_reasons == ("sw_thermal",)
    assert reading.sample.headroom_celsius == 27
    assert backend.detail == ""


def test_the_url_may_come_late(clock: ManualClock, server: Server) -> None:
    server.answer = {"gpus": [card(0)]}
    backend = opened(None, clock)
    assert len(backend.sweep().readings) == 4
    backend.set_url(server.url)
    (reading,) = backend.sweep().readings
    assert reading.sample.temperature_celsius == 60


def test_cards_cool_down_after_their_server(clock: ManualClock) -> None:
    with serving() as server:
        server.answer = {"gpus": [card(0, temperature_celsius=80.0, power_watts=600)]}
        backend = opened(server.url, clock)
        backend.sweep()
    temperatures, energies = [], []
    for _ in range(3):
        clock.advance(10)
        (reading,) = backend.sweep().readings
        assert reading.sample.temperature_celsius is not None
        temperatures.append(reading.sample.temperature_celsius)
        energies.append(reading.sample.energy_joules)
        assert reading.sample.power_watts == 70
    assert 80 > temperatures[0] > temperatures[1] > temperatures[2] > 36
    assert energies == [710, 1410, 2110]
    assert "no server answers at http://127.0.0.1:" in backend.detail


def test_the_energy_counter_never_falls(clock: ManualClock, server: Server) -> None:
    backend = opened(server.url, clock)
    energies = []
    for joules in (100, 250, 0, 40):
        server.answer = {"gpus": [card(0, energy_joules=joules)]}
        (reading,) = backend.sweep().readings
        energies.append(reading.sample.energy_joules)
    assert energies == [100, 250, 250, 290]


def test_a_lost_card_is_told_once_and_the_others_stay(clock: ManualClock, server: Server) -> None:
    backend = opened(server.url, clock)
    server.answer = {"gpus": [card(0), card(1, lost=True)]}
    first, second = backend.sweep(), backend.sweep()
    assert [(failed.gpu, failed.lost) for failed in first.failures] == [(1, True)]
    assert second.failures == ()
    assert [reading.sample.gpu for reading in second.readings] == [0]
    assert [info.gpu for info in backend.gpus] == [0, 1]
    server.answer = {"gpus": [card(0), card(1)]}
    assert [reading.sample.gpu for reading in backend.sweep().readings] == [0, 1]


def test_a_server_that_is_slow_is_waited_for_and_then_given_up(
    clock: ManualClock, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_dash.gpu.simulated.TIMEOUT_S", 0.05)
    server.answer = {"gpus": [card(0)]}
    backend = opened(server.url, clock)
    backend.sweep()
    server.delay.clear()
    clock.advance(PATIENCE_S / 2)
    assert backend.sweep().readings == ()
    clock.advance(PATIENCE_S)
    (reading,) = backend.sweep().readings
    assert reading.sample.power_watts == 70


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (404, {"detail": "Not Found"}, "HTTP 404"),
        (200, {"object": "list"}, "gpus"),
        (200, b"<html>", "malformed"),
        (200, {"gpus": [{"gpu": 0, "name": "x", "sample": {"power_watts": "hot"}}]}, "power_watts"),
    ],
)
def test_a_server_of_something_else_leaves_idle_cards_and_says_so(
    clock: ManualClock, server: Server, status: int, answer: Any, words: str
) -> None:
    server.status, server.answer = status, answer
    backend = opened(server.url, clock)
    assert len(backend.sweep().readings) == 4
    assert words in backend.detail
    assert server.url in backend.detail


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://127.0.0.1:notaport"])
def test_a_url_that_is_none_leaves_idle_cards(clock: ManualClock, url: str) -> None:
    backend = opened(url, clock)
    assert len(backend.sweep().readings) == 4
    assert url in backend.detail
