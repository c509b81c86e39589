"""The life of the stand-in: start-up, serving, and the ways to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import traceback
from collections.abc import Coroutine, Iterable
from dataclasses import replace

from gpu_dash.demo import engine_core, failure, narrator, shutdown, startup
from gpu_dash.demo.api import Api
from gpu_dash.demo.arguments import Options
from gpu_dash.demo.engine import Capacity, Engine
from gpu_dash.demo.failure import Death, Fault
from gpu_dash.demo.http_server import HttpServer, Request, take_port
from gpu_dash.demo.log import ServerLog
from gpu_dash.demo.metrics import BLOCK_TOKENS, MetricsPage
from gpu_dash.demo.protocol import ModelCard
from gpu_dash.demo.rack import Rack, card_specs
from gpu_dash.demo.simulation import EngineState, Simulation

_BACKLOG = 2048
_FLUSH_S = 0.3
_DRAIN_LOOK_S = 0.05


async def serve(options: Options) -> int:
    """Be a vLLM server until a signal or a fault ends it; returns the exit code."""
    log = ServerLog(os.getpid())
    if options.tensor_parallel_size > options.gpus:
        log.raw_error(
            f"ValueError: World size ({options.tensor_parallel_size}) is larger than the number "
            f"of available GPUs ({options.gpus}) in this node."
        )
        return 1
    try:
        listener = take_port(options.host, options.port)
    except OSError:
        log.raw_error(traceback.format_exc().rstrip())
        return 1
    with listener:
        return await _start_and_run(options, log, listener)


async def _start_and_run(options: Options, log: ServerLog, listener: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def play(stages: Iterable[startup.Stage]) -> None:
        for stage in stages:
            await asyncio.sleep(began + stage.at * options.startup_s - loop.time())
            stage.say(log)

    # vLLM takes no notice of SIGTERM while it loads; SIGINT ends it.
    loop.add_signal_handler(signal.SIGTERM, lambda: None)
    await play(startup.before_engine(options))
    await asyncio.sleep(began + startup.ENGINE_STARTS_AT * options.startup_s - loop.time())
    core = engine_core.start()
    loop.add_signal_handler(signal.SIGINT, _die_of_interrupt, core)
    try:
        log.engine_core_started(core.pid)
        capacity = _capacity(options)
        await play(startup.engine_stages(options, capacity.kv_cache_tokens))
        host, port = listener.getsockname()[:2]
        await play(startup.ready_stages(options, f"http://{host}:{port}", os.getpid()))
        return await _Server(options, log, capacity).run(listener, core.pid)
    finally:
        engine_core.stop(core)


class _Server:
    """A server that is ready."""

    def __init__(self, options: Options, log: ServerLog, capacity: Capacity) -> None:
        self._options = options
        self._log = log
        self._loop = asyncio.get_running_loop()
        specs = card_specs(options.gpus, hot_gpu=options.hot_gpu, time_scale=options.time_scale)
        rack = Rack(specs, options.tensor_parallel_size)
        self._simulation = Simulation(Engine(capacity), rack, self._loop)
        names = options.served_model_names
        self._metrics = MetricsPage(self._simulation.engine, names[0])
        self._api = Api(
            self._simulation,
            ModelCard(names, options.model, options.max_model_len),
            self._metrics,
            api_key=options.api_key,
            inject=self._inject,
        )
        self._http = HttpServer(self._api.handle, self._observe)
        self._signalled = asyncio.Event()
        self._ending: asyncio.Future[Death | None] = self._loop.create_future()
        """Why the server ends: the death of its engine, or ``None`` for a signal."""

    async def run(self, listener: socket.socket, core_pid: int) -> int:
        """Serve until something ends it; returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop_asked)
        core = os.pidfd_open(core_pid)
        self._loop.add_reader(core, self._core_exited)
        listening = await self._loop.create_server(
            self._http.connect, sock=listener, backlog=_BACKLOG
        )
        self._log.raw_error("INFO:     Application startup complete.")
        timers = [
            self._loop.call_later(timed.after_s, self._inject, timed.fault, None)
            for timed in self._options.faults
        ]
        tasks = [asyncio.create_task(coroutine) for coroutine in self._background()]
        try:
            death = await self._ending
            self._loop.remove_reader(core)
            await (self._stop() if death is None else self._linger(death))
            shutdown.log_server_stopped(self._log)
            return 0 if death is None else death.exit_code
        finally:
            os.close(core)
            for timer in timers:
                timer.cancel()
            for task in tasks:
                task.cancel()
            self._simulation.close()
            listening.close()
            await self._close_connections()

    def _background(self) -> Iterable[Coroutine[None, None, None]]:
        log, simulation, options = self._log, self._simulation, self._options
        yield narrator.tell_statistics(log, simulation, options.stats_interval_s)
        yield narrator.tell_stalls(log, simulation)
        if options.log_lines_per_s:
            yield narrator.chatter(log, options.tensor_parallel_size, options.log_lines_per_s)

    def _observe(self, request: Request, status: int) -> None:
        """Count an answer, and write its access line."""
        if request.path.startswith("/sim/"):
            return
        if request.path.startswith("/v1/"):
            self._metrics.count_response(request.path, request.method, status)
        if self._options.access_log and request.path not in self._options.quiet_endpoints:
            self._log.access(request.peer, request.method, request.path, status)

    def _inject(self, fault: Fault, gpu: int | None) -> None:
        """Do what a fault says; the card is the one with bad air if none is named."""
        simulation, log = self._simulation, self._log
        if simulation.state is EngineState.DEAD:
            return
        if gpu is None:
            gpu = self._options.hot_gpu or 0
        workers = self._options.tensor_parallel_size
        rank = gpu if gpu < workers else 0
        match fault:
            case Fault.FREEZE:
                simulation.freeze(rank)
            case Fault.UNFREEZE:
                simulation.unfreeze()
            case Fault.CRASH:
                failure.log_worker_killed(log, rank, workers)
                self._die(failure.KILLED)
            case Fault.NCCL_TIMEOUT:
                failure.log_nccl_timeout(log, rank, workers)
                self._die(failure.ENGINE_DIED)
            case Fault.LOSE_GPU:
                simulation.rack.lose(gpu)
                if gpu < workers:
                    failure.log_gpu_lost(log, gpu, workers)
                    self._die(failure.ENGINE_DIED)

    def _core_exited(self) -> None:
        failure.log_engine_core_exited(self._log)
        self._die(failure.ENGINE_DIED)

    def _die(self, death: Death) -> None:
        open_requests = self._simulation.die()
        failure.log_follow_on(self._log, open_requests)
        if not self._ending.done():
            self._ending.set_result(death)

    def _stop_asked(self) -> None:
        self._signalled.set()
        if not self._ending.done():
            self._ending.set_result(None)

    async def _stop(self) -> None:
        """Let open requests finish for as long as the flag says, then end them."""
        timeout_s = self._options.shutdown_timeout_s
        shutdown.log_stop_asked(self._log, timeout_s)
        self._api.draining = True
        deadline = self._loop.time() + timeout_s
        while not self._simulation.engine.idle and self._loop.time() < deadline:
            await asyncio.sleep(_DRAIN_LOOK_S)
        self._simulation.abort_all()
        shutdown.log_engine_stopped(self._log)

    async def _linger(self, death: Death) -> None:
        """Answer with errors for a while; a signal cuts it short."""
        try:
            async with asyncio.timeout(death.grace_s):
                await self._signalled.wait()
        except TimeoutError:
            return

    async def _close_connections(self) -> None:
        deadline = self._loop.time() + _FLUSH_S
        for connection in list(self._http.connections):
            connection.close()
        while self._http.connections and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._http.connections):
            connection.abort()


def _capacity(options: Options) -> Capacity:
    capacity = Capacity(
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
    )
    if options.num_gpu_blocks is None:
        return capacity
    return replace(capacity, kv_cache_tokens=options.num_gpu_blocks * BLOCK_TOKENS)


def _die_of_interrupt(core: subprocess.Popen[bytes]) -> None:
    """End as an interrupted start-up of vLLM's does: by the signal, the engine first."""
    engine_core.stop(core)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
