"""What a profile file may say. ``gpu_dash.server.profile_file`` reads and checks the TOML.

A docstring under each field is the documentation of that field: ``gpu-dash profiles`` shows it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.load import Endpoint, ExpectedBand, LoadPlan
from gpu_dash.model.server import HandleKind

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
    output_tokens: int = 256
    """Tokens that each request asks for."""
    ignore_eos: bool = True
    """Go on to ``output_tokens`` whatever the model says (vLLM's ``ignore_eos``)."""
    requests: int | None = None
    """Instead of ``step``: a step is this many requests."""
    timeout: str = "120s"
    """A request that takes longer is ended and counted as ``timeout``."""


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

    def plan(self) -> LoadPlan:
        """The profile's ramp as a load plan.

        Raises:
            UsageError: one of the durations is none.
        """
        load = self.load
        return LoadPlan(
            ramp=load.ramp,
            step_s=parse_duration(load.step),
            warmup_s=parse_duration(load.warmup),
            endpoint=load.endpoint,
            prompt=load.prompt,
            prompt_tokens=load.prompt_tokens,
            output_tokens=load.output_tokens,
            ignore_eos=load.ignore_eos,
            requests=load.requests,
            extra_body={} if self.target is None else self.target.extra_body,
            timeout_s=parse_duration(load.timeout),
            expected=self.expected,
        )
