"""The command line: vLLM's flags as far as they change anything here, and the simulation's own.

A flag of vLLM's that the stand-in has no use for is accepted and ignored, as a profile may carry
it for the real server.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpu_dash.demo.failure import Fault

DEFAULT_MAX_MODEL_LEN = 8192
_MOST_GPUS = 16
_DEFAULT_HOT_GPU = 2
_UNITS = {"k": 1000, "m": 1_000_000, "K": 1024, "M": 1024**2}


@dataclass(frozen=True, slots=True)
class TimedFault:
    """A fault that comes by itself."""

    fault: Fault
    after_s: float
    """Seconds after the server is ready."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the stand-in was asked to be."""

    model: str
    served_model_names: tuple[str, ...]
    host: str
    port: int
    api_key: str | None
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    num_gpu_blocks: int | None
    tensor_parallel_size: int
    shutdown_timeout_s: float
    quiet_endpoints: frozenset[str]
    """Paths whose requests are not in the access log."""
    access_log: bool
    stats_interval_s: float
    gpus: int
    hot_gpu: int | None
    time_scale: float
    startup_s: float
    faults: tuple[TimedFault, ...]
    log_lines_per_s: float
    given: Mapping[str, object]
    """The flags as they were given, for the line that vLLM prints about them."""


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """Read the command line.

    Raises:
        SystemExit: 2, after a line on stderr in vLLM's words.
    """
    parser = _parser()
    flags, _ = parser.parse_known_args([_with_dashes(argument) for argument in arguments])
    if flags.hot_gpu is None:
        hot_gpu: int | None = min(_DEFAULT_HOT_GPU, flags.sim_gpus - 1)
    else:
        hot_gpu = None if flags.hot_gpu < 0 else flags.hot_gpu
    if hot_gpu is not None and hot_gpu >= flags.sim_gpus:
        parser.error(f"argument --sim-hot-gpu: there are {flags.sim_gpus} cards, from 0 on")
    quiet = flags.disable_access_log_for_endpoints or ""
    interval_s = float(environment.get("VLLM_LOG_STATS_INTERVAL", "10"))
    return Options(
        model=flags.model,
        served_model_names=tuple(flags.served_model_name or [flags.model]),
        host=flags.host,
        port=flags.port,
        api_key=flags.api_key or environment.get("VLLM_API_KEY") or None,
        max_model_len=flags.max_model_len,
        max_num_seqs=flags.max_num_seqs,
        max_num_batched_tokens=flags.max_num_batched_tokens,
        num_gpu_blocks=flags.num_gpu_blocks_override,
        tensor_parallel_size=flags.tensor_parallel_size,
        shutdown_timeout_s=flags.shutdown_timeout,
        quiet_endpoints=frozenset(path.strip() for path in quiet.split(",") if path.strip()),
        access_log=not flags.disable_uvicorn_access_log,
        stats_interval_s=interval_s if interval_s > 0 else 10.0,
        gpus=flags.sim_gpus,
        hot_gpu=hot_gpu,
        time_scale=flags.sim_time_scale,
        startup_s=flags.sim_startup,
        faults=tuple(flags.sim_fault),
        log_lines_per_s=flags.sim_log_rate,
        given=_given(flags.model, arguments),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vllm serve", allow_abbrev=False)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_whole(0, 65535), default=8000)
    parser.add_argument("--api-key")
    parser.add_argument("--max-model-len", type=_context, default=DEFAULT_MAX_MODEL_LEN)
    parser.add_argument("--max-num-seqs", type=_whole(1), default=256)
    parser.add_argument("--max-num-batched-tokens", type=_whole(1), default=8192)
    parser.add_argument("--num-gpu-blocks-override", type=_whole(1))
    parser.add_argument("--tensor-parallel-size", "-tp", type=_whole(1), default=1)
    parser.add_argument("--shutdown-timeout", type=_decimal(0), default=0.0)
    parser.add_argument("--disable-access-log-for-endpoints")
    parser.add_argument("--disable-uvicorn-access-log", action="store_true")
    simulation = parser.add_argument_group("simulation")
    simulation.add_argument("--sim-gpus", type=_whole(1, _MOST_GPUS), default=4)
    simulation.add_argument(
        "--sim-hot-gpu",
        dest="hot_gpu",
        type=_whole(-1),
        help="the card with bad air flow; -1: none",
    )
    simulation.add_argument(
        "--sim-time-scale",
        type=_decimal(0.01),
        default=1.0,
        help="heat moves so many times as fast",
    )
    simulation.add_argument("--sim-startup", type=_decimal(0), default=3.0)
    simulation.add_argument(
        "--sim-fault",
        type=_timed_fault,
        action="append",
        default=[],
        metavar="NAME@SECONDS",
        help=f"{', '.join(Fault)}, so many seconds after ready",
    )
    simulation.add_argument("--sim-log-rate", type=_decimal(0), default=0.0)
    return parser


def _whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """A whole number between two bounds, for argparse."""

    def read(text: str) -> int:
        value = int(text)
        _within(value, low, high)
        return value

    read.__name__ = "int"
    return read


def _decimal(low: float) -> Callable[[str], float]:
    """A number from a bound on, for argparse."""

    def read(text: str) -> float:
        value = float(text)
        _within(value, low, None)
        return value

    read.__name__ = "float"
    return read


def _within(value: float, low: float, high: float | None) -> None:
    if not value >= low:
        raise argparse.ArgumentTypeError(f"must be at least {low}, got {value}")
    if high is not None and value > high:
        raise argparse.ArgumentTypeError(f"must be at most {high}, got {value}")


def _context(text: str) -> int:
    """``8192``, ``8k`` (8000), ``8K`` (8192), ``auto`` or ``-1`` (the model's own)."""
    if text in {"auto", "-1"}:
        return DEFAULT_MAX_MODEL_LEN
    unit = _UNITS.get(text[-1:], 1)
    value = int(float(text[:-1]) * unit) if unit > 1 else int(text)
    _within(value, 1, None)
    return value


def _timed_fault(text: str) -> TimedFault:
    name, _, seconds = text.partition("@")
    try:
        fault, after_s = Fault(name), float(seconds)
    except ValueError:
        names = ", ".join(Fault)
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME@SECONDS with {names}") from None
    return TimedFault(fault, after_s)


def _with_dashes(argument: str) -> str:
    """``--max_model_len`` is the same flag as ``--max-model-len``."""
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _given(model: str, arguments: Sequence[str]) -> Mapping[str, object]:
    """The flags as vLLM lists them: names with underscores, a bare flag as ``True``."""
    given: dict[str, object] = {"model_tag": model, "model": model}
    name = ""
    for argument in arguments:
        if argument.startswith("-") and not argument.lstrip("-")[:1].isdigit():
            name, equals, value = argument.lstrip("-").partition("=")
            name = name.replace("-", "_")
            given[name] = value if equals else True
        elif name:
            given[name] = argument if given[name] is True else f"{given[name]} {argument}"
    return {key: "***" if key == "api_key" else value for key, value in given.items()}
