"""What a profile file may say. ``gpu_dash.server.profile_file`` reads and checks the TOML.

A docstring under each field is the documentation of that field: ``scripts.profile_docs`` puts it
into ``docs/profiles.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.load import Arrival, Endpoint, ExpectedBand, LoadPlan
from gpu_dash.model.server import HandleKind
from gpu_dash.model.slo import parse_slo
from gpu_dash.model.token_spread import parse_token_spread

FlagValue = bool | int | float | str | list[str | int | float]


class ServerProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[server]``: what to start and how."""

    model: str
    """Path or repository id of the model, vLLM's positional argument."""
    kind: HandleKind = HandleKind.PROCESS
    """``process``, or ``container`` for one that docker or podman runs."""
    command: tuple[str, ...] = ("vllm", "serve")
    """Program and first arguments; the model and the flags follow. ``{python}`` stands for the
    Python that runs gpu-dash."""
    image: str | None = None
    """``container``: the image. ``command`` is then the container program, ``["docker"]``."""
    container_args: tuple[str, ...] = ()
    """``container``: arguments of ``run`` in front of the image (mounts, devices, ipc)."""
    compose_file: str | None = None
    """``container``, in place of ``image``: a compose file of your own, from the folder in which
    gpu-dash is started. What the server is given stands there; ``port`` is the one that it
    publishes, ``flags`` stay empty."""
    compose_service: str | None = None
    """The service of that file."""
    host: str = "127.0.0.1"
    """Address that the server listens on."""
    port: int = 8000
    """Port that the server listens on; 0 takes a free one."""
    flags: dict[str, FlagValue] = {}
    """vLLM's flags without the dashes. ``true`` writes the bare flag, ``false`` its ``--no-``
    form, a list repeats the value behind one flag."""
    env: dict[str, str] = {}
    """Environment of the server, on top of the environment of the person who launches it."""
    served_model_name: str | None = None
    """Name that requests use; the model's own name if it is left out."""
    api_key_env: str | None = None
    """Environment variable that holds the key. The server gets it as ``VLLM_API_KEY``."""
    restarts: int = 0
    """How many times in a row a server that failed is started again; 0 leaves it as it is."""
    restart_delay: str = "5s"
    """Wait before the first of these; it doubles with each, up to five minutes."""
    ready_timeout: str = "20m"
    """How long ``/health`` may take to answer before the launch counts as failed."""
    shutdown_timeout: str = "0s"
    """Time that vLLM gives to open requests on stop (its ``--shutdown-timeout``); the supervisor
    waits 20 s longer before it ends the whole session."""


class TargetProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[target]``, in place of ``[server]``: an endpoint that somebody else runs. Nothing is
    launched; the dashboard and ``run`` treat it as they treat ``--base-url``."""

    base_url: str
    """With or without one ``/v1`` at its end."""
    base_url_env: str | None = None
    """Environment variable that replaces ``base_url`` where it is set."""
    model: str | None = None
    """The model's id; asked from ``/v1/models`` if left out."""
    model_env: str | None = None
    """Environment variable that replaces ``model`` where it is set."""
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    extra_body: dict[str, Any] = {}
    """Further fields of each request."""
    host_env: dict[str, str] = {}
    """Variables that the server's host is known to need. Shown only: nothing is started with
    them."""


class LoadProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[load]``: the ramp that ``r`` starts and ``run`` runs."""

    ramp: tuple[int, ...] = (1, 4, 8, 16, 32)
    """Concurrent requests, step by step."""
    rates: tuple[float, ...] = ()
    """Requests per second, step by step: an open loop, instead of ``ramp``."""
    arrival: Arrival = Arrival.POISSON
    """How an open loop spreads its requests: ``constant``, ``poisson`` or ``gamma`` (in bursts)."""
    trace: str | None = None
    """A trace to replay instead, JSON Lines or CSV: each request when the trace says so."""
    trace_speed: float = 1.0
    """How much faster than recorded."""
    load_procs: int = 1
    """Processes that share the load."""
    step: str = "60s"
    """Length of a step's window, warm-up not included."""
    warmup: str = "5s"
    """Time at the head of each step that is not counted."""
    endpoint: Endpoint = Endpoint.COMPLETIONS
    """``completions`` or ``chat``."""
    prompt: str | None = None
    """Text of each request; a synthetic one of ``prompt_tokens`` if it is left out."""
    prompt_tokens: int = 512
    """Length of the synthetic prompt."""
    dataset: str | None = None
    """File with prompts, ShareGPT's JSON or JSON Lines, instead of ``prompt``."""
    shared_prefix: float = 0.0
    """Share of a synthetic prompt, from its head, that all requests have in common: 0 to 1."""
    turns: int = 1
    """Turns of a conversation: each next prompt holds the answers before it. ``chat`` only."""
    output_tokens: int | str = 256
    """Tokens that each request asks for; ``"uniform:64,256"``, ``"normal:200,50"`` or
    ``"lognormal:200,100"`` (mean and standard deviation) spreads them."""
    ignore_eos: bool = True
    """Go on to ``output_tokens`` whatever the model says (vLLM's ``ignore_eos``)."""
    requests: int | None = None
    """Instead of ``step``: a step is this many requests."""
    warmup_requests: int = 0
    """With ``requests``, in place of ``warmup``: so many before the first step that do not
    count."""
    seed: int = 0
    """The same number makes the same prompts and arrivals; 0 makes others each time."""
    timeout: str = "120s"
    """A request that takes longer is ended and counted as ``timeout``."""
    retries: int = 0
    """How many times a request that was refused before its first token (no connection, 429, 503)
    is sent again. It is counted, and latency goes on from the first time."""
    slo: str | None = None
    """What a request must keep to count as goodput: ``"ttft=500ms,tpot=30ms"``."""
    headers: dict[str, str] = {}
    """Further headers of each request. A value that is ``"$NAME"`` is taken from that environment
    variable, and is never written or shown."""
    extra_body: dict[str, Any] = {}
    """Further fields of each request."""

    @property
    def words(self) -> str:
        """The load in a line."""
        tokens = f"{self.output_tokens} output tokens"
        if self.trace is not None:
            return f"the trace {self.trace}, ×{self.trace_speed:g}, {tokens}"
        ramp = ", ".join(f"{rate:g}" for rate in self.rates) or ", ".join(map(str, self.ramp))
        unit = f"req/s ({self.arrival})" if self.rates else "concurrent"
        length = f"{self.requests} requests" if self.requests else self.step
        return f"{ramp} {unit}, {length} each, {tokens}"


class GpuProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[gpu]``: where the readings come from."""

    source: str = "auto"
    """``auto``, ``nvml``, ``amd``, ``sim`` or ``none``."""
    simulated_cards: int = 4
    """``sim``: how many idle cards there are while no simulated server runs; 1 to 16."""
    power_budget_watts: float | None = None
    """What the supply and the cooling of this host give all cards together; ``doctor`` compares it
    with what they may draw at full load."""


NO_SERVER = ServerProfile(model="")
"""Stands where a profile has a ``[target]`` and launches nothing."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One launch profile: a TOML file."""

    server: ServerProfile = NO_SERVER
    target: TargetProfile | None = None
    description: str = ""
    """One line for ``gpu-dash profiles list``."""
    vllm_version: str | None = None
    """The vLLM that the flags are written for; ``profiles check`` compares with it."""
    expected: ExpectedBand | None = None
    """``[expected]``: what this profile is known to reach, shown beside what was measured."""
    load: LoadProfile = LoadProfile()
    gpu: GpuProfile = GpuProfile()
    name: str = ""
    """The file's name without ``.toml``; not written in the file."""

    @property
    def has_key(self) -> bool:
        """Its requests carry a key."""
        of = self.server if self.target is None else self.target
        return of.api_key_env is not None

    def plan(self) -> LoadPlan:
        """The profile's ramp as a load plan.

        Raises:
            UsageError: a duration, a limit or a distribution is none.
        """
        load = self.load
        tokens, spread = load.output_tokens, None
        if isinstance(tokens, str):
            spread = parse_token_spread(tokens)
            tokens = max(1, round(spread.mean))
        of_target = {} if self.target is None else self.target.extra_body
        return LoadPlan(
            ramp=load.ramp,
            rates=load.rates,
            arrival=load.arrival,
            trace=_absolute(load.trace),
            trace_speed=load.trace_speed,
            workers=load.load_procs,
            step_s=parse_duration(load.step),
            warmup_s=parse_duration(load.warmup),
            endpoint=load.endpoint,
            prompt=load.prompt,
            prompt_tokens=load.prompt_tokens,
            dataset=_absolute(load.dataset),
            shared_prefix=load.shared_prefix,
            turns=load.turns,
            output_tokens=tokens,
            output_spread=spread,
            ignore_eos=load.ignore_eos,
            requests=load.requests,
            warmup_requests=load.warmup_requests,
            seed=load.seed,
            retries=load.retries,
            slo=None if load.slo is None else parse_slo(load.slo),
            extra_body={**of_target, **load.extra_body},
            timeout_s=parse_duration(load.timeout),
            expected=self.expected,
        )


def _absolute(path: str | None) -> str | None:
    """A path of a profile: the agent has another working directory than the person."""
    return None if path is None else str(Path(path).expanduser().absolute())
