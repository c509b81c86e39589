"""The start-up as vLLM logs it: what is printed when, until the port listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpu_dash.demo.arguments import Options
from gpu_dash.demo.log import API_SERVER, ENGINE_CORE, Process, ServerLog, worker

VLLM_VERSION = "0.33.0"
"""The version whose log and HTTP surface the stand-in imitates."""

_SHARDS = 17
_GRAPHS = 51
_WEIGHTS_GIB = 61.0
ENGINE_STARTS_AT = 0.1
"""As a share of the start-up: when the API server has prepared and starts the engine."""
_BAR_WIDTH = 10

Say = Callable[[ServerLog], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """Something that is said at a point of the start-up."""

    at: float
    """0 to 1 of the start-up."""
    say: Say


def before_engine(options: Options) -> Iterator[Stage]:
    """What the API server says before it starts the engine's process."""
    logo = (
        "",
        "       █     █     █▄   ▄█",
        f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {VLLM_VERSION}",
        f"  █▄█▀ █     █     █     █  model   {options.model}",
        "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
        "",
    )
    yield _stage(0.0, API_SERVER, "startup.py:41", *logo)
    yield _stage(0.0, API_SERVER, "startup.py:77", f"non-default args: {dict(options.given)}")
    yield _stage(0.02, API_SERVER, "model.py:733", "Resolved architecture: SimulatedForCausalLM")
    yield _stage(0.02, API_SERVER, "model.py:2152", f"Using max model len {options.max_model_len}")
    yield _stage(
        0.04,
        API_SERVER,
        "scheduler.py:307",
        f"Chunked prefill is enabled with max_num_batched_tokens={options.max_num_batched_tokens}.",
    )


def engine_stages(options: Options, kv_cache_tokens: int) -> Iterator[Stage]:
    """What the engine and its workers say while they load."""
    ranks = options.tensor_parallel_size
    yield _stage(
        ENGINE_STARTS_AT,
        ENGINE_CORE,
        "core.py:133",
        f"Initializing a V1 LLM engine (v{VLLM_VERSION}) with config: model='{options.model}', "
        f"dtype=torch.bfloat16, max_seq_len={options.max_model_len}, load_format=auto, "
        f"tensor_parallel_size={ranks}, pipeline_parallel_size=1",
    )
    yield from _distributed_stages(ranks)
    yield from _loading_stages(options.model, ranks)
    yield from _cache_stages(options, kv_cache_tokens)


def ready_stages(options: Options, url: str, pid: int) -> Iterator[Stage]:
    """What the API server says at the end; after it, the port listens."""
    yield _stage(0.97, API_SERVER, "entry.py:136", "Supported tasks: ['generate']")
    yield _stage(0.98, API_SERVER, "entry.py:140", f"Starting vLLM server on {url}")
    yield _stage(0.98, API_SERVER, "launcher.py:186", "Available routes are:")
    for route, methods in (
        ("/health", "GET"),
        ("/metrics", "GET"),
        ("/version", "GET"),
        ("/v1/models", "GET"),
        ("/v1/chat/completions", "POST"),
        ("/v1/completions", "POST"),
    ):
        text = f"Route: {route}, Methods: {methods}"
        yield _stage(0.98, API_SERVER, "launcher.py:195", text)
    yield Stage(0.99, lambda log: log.raw_error(f"INFO:     Started server process [{pid}]"))
    yield Stage(1.0, lambda log: log.raw_error("INFO:     Waiting for application startup."))


def _distributed_stages(ranks: int) -> Iterator[Stage]:
    workers = [Process("Worker", rank) for rank in range(ranks)]
    for rank, early in enumerate(workers):
        yield _stage(
            0.16,
            early,
            "parallel_state.py:1906",
            f"world_size={ranks} rank={rank} local_rank={rank} "
            "distributed_init_method=tcp://127.0.0.1:35759 backend=nccl",
        )
    yield _stage(0.2, workers[0], "pynccl.py:113", "vLLM is using nccl==2.28.9")
    yield _stage(
        0.22,
        workers[0],
        "parallel_state.py:2350",
        f"rank 0 in world size {ranks} is assigned as DP rank 0, PP rank 0, PCP rank 0, "
        "TP rank 0, ETP rank 0, EP rank N/A, EPLB rank N/A",
    )


def _loading_stages(model: str, ranks: int) -> Iterator[Stage]:
    workers = [worker(rank, ranks) for rank in range(ranks)]
    for each in workers:
        yield _stage(0.24, each, "gpu_model_runner.py:5123", f"Starting to load model {model}...")
    for shard in range(_SHARDS + 1):
        yield Stage(0.26 + 0.3 * shard / _SHARDS, _shard_line(shard))
    yield Stage(0.56, lambda log: log.raw_error(""))
    yield _stage(0.57, workers[0], "default_loader.py:501", "Loading weights took 14.82 seconds")
    for each in workers:
        yield _stage(
            0.58,
            each,
            "gpu_model_runner.py:5190",
            f"Model loading took {_WEIGHTS_GIB / ranks:.2f} GiB memory and 15.934621 seconds",
        )


def _cache_stages(options: Options, kv_cache_tokens: int) -> Iterator[Stage]:
    ranks = options.tensor_parallel_size
    first = worker(0, ranks)
    text = "Dynamo bytecode transform time: 5.82 s"
    yield _stage(0.64, first, "backends.py:1155", text)
    yield _stage(0.7, first, "monitor.py:53", "torch.compile took 14.41 s in total")
    yield _stage(0.72, first, "gpu_worker.py:560", "Available KV cache memory: 51.94 GiB")
    concurrency = kv_cache_tokens / options.max_model_len
    yield _stage(
        0.73,
        ENGINE_CORE,
        "kv_cache_utils.py:2327",
        f"GPU KV cache size: {kv_cache_tokens:,} tokens, Maximum concurrency for "
        f"{options.max_model_len:,} tokens per request: {concurrency:.2f}x",
    )
    for graph in range(_GRAPHS + 1):
        yield Stage(0.74 + 0.18 * graph / _GRAPHS, _capture_bar(graph))
    for rank in range(ranks):
        yield _stage(
            0.93,
            worker(rank, ranks),
            "gpu_model_runner.py:6480",
            "Graph capturing finished in 9 secs, took 1.62 GiB",
        )
    yield _stage(
        0.96,
        ENGINE_CORE,
        "core.py:402",
        "init engine (profile, create kv cache, warmup model) took 38.20 s (compilation: 14.41 s)",
    )


def _stage(at: float, process: Process, source: str, *lines: str) -> Stage:
    return Stage(at, lambda log: log.record(process, "INFO", source, *lines))


def _shard_line(shard: int) -> Say:
    percent = 100 * shard // _SHARDS
    rate = "?it/s" if shard == 0 else "1.15it/s"
    passed, left = shard * 13 // 15, (_SHARDS - shard) * 13 // 15
    remaining = "?" if shard == 0 else f"00:{left:02}"
    text = (
        f"Loading safetensors checkpoint shards: {percent:3}% Completed | {shard}/{_SHARDS} "
        f"[00:{passed:02}<{remaining}, {rate}]"
    )
    return lambda log: log.raw_error(text)


def _capture_bar(graph: int) -> Say:
    """One state of the line that tqdm writes over itself."""
    full = _BAR_WIDTH * graph // _GRAPHS
    bar = "█" * full + " " * (_BAR_WIDTH - full)
    text = (
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): "
        f"{100 * graph // _GRAPHS:3}%|{bar}| {graph}/{_GRAPHS} [00:{graph // 7:02}, 7.48it/s]"
    )
    return lambda log: log.progress(text, done=graph == _GRAPHS)
