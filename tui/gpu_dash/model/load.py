"""What the load asks for, what each request met, and what a step comes to.

The field names of :class:`RequestRecord` and :class:`StepResult` are the column names of
``requests.csv`` and ``steps.csv``: scripts rely on them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from gpu_dash.model.headers import Headers
from gpu_dash.model.token_spread import TokenSpread

MOST_REQUESTS_PER_S = 10_000
"""More than the load processes of one host can send."""
MOST_LOAD_PROCS = 64
"""More than any host has use for."""


class Endpoint(StrEnum):
    """The two OpenAI endpoints that the load can drive."""

    COMPLETIONS = "completions"
    CHAT = "chat"


class Outcome(StrEnum):
    """How a request ended; the first that fits. An error is never a fast success."""

    OK = "ok"
    UNAUTHORIZED = "unauthorized"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CONTEXT_EXCEEDED = "context_exceeded"
    BAD_REQUEST = "bad_request"
    SERVER_ERROR = "server_error"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    DISCONNECTED = "disconnected"
    MALFORMED = "malformed"
    ERROR_IN_STREAM = "error_in_stream"
    NO_CHOICES = "no_choices"
    EMPTY = "empty"
    CUT = "cut"
    CANCELLED = "cancelled"


class Arrival(StrEnum):
    """How the requests of an open loop are spread over time."""

    CONSTANT = "constant"
    POISSON = "poisson"
    """Independent of each other, as from many people."""
    GAMMA = "gamma"
    """In bursts: the gaps vary half as much again as with Poisson."""


def load_words(concurrency: int | None, request_rate: float | None) -> str:
    """What a step asks for, in words: ``8 concurrent``, or ``2.5 req/s`` in an open loop."""
    return f"{concurrency} concurrent" if request_rate is None else f"{request_rate:g} req/s"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where the load goes."""

    base_url: str
    """Scheme, host and port without a trailing ``/v1`` or slash: ``http://127.0.0.1:8000``."""
    model: str
    api_key: str | None = None
    """Kept in memory only: never written, logged, shown or put in an argument list."""
    headers: Headers = Headers()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show up anywhere."""
        key = (self.api_key,) if self.api_key else ()
        return (*key, *(value for _, value in self.headers.secret))


class Slo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request must meet to count as goodput."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None


class ExpectedBand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[expected]`` of a profile: what it is known to reach, to stand beside what was measured."""

    concurrency: int
    """Concurrent requests that the band is for."""
    output_tokens_per_s: tuple[float, float]
    """Lowest and highest throughput."""
    ttft: str | None = None
    """Time to first token that goes with it."""


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A ramp: which concurrencies, how long, and what each request asks for."""

    ramp: tuple[int, ...] = (1, 4, 8, 16, 32)
    rates: tuple[float, ...] = ()
    """Requests per second, step by step: an open loop, instead of ``ramp``."""
    arrival: Arrival = Arrival.POISSON
    """How an open loop spreads its requests."""
    step_s: float = 60.0
    """Length of a step's window, warm-up not included."""
    warmup_s: float = 5.0
    requests: int | None = None
    """Instead of a window: a step is this many requests, from first send to last token."""
    warmup_requests: int = 0
    """With ``requests``: so many before the first step that do not count."""
    workers: int = 1
    """Load processes that share the load; decided when the session begins."""
    endpoint: Endpoint = Endpoint.COMPLETIONS
    prompt: str | None = None
    prompt_tokens: int | None = None
    """Length of the synthetic prompt, used when ``prompt`` is not given; the server's ``usage``
    says what it really was."""
    dataset: str | None = None
    """Absolute path of a file with prompts, used instead of the two above."""
    shared_prefix: float = 0.0
    """Share of a synthetic prompt, from its head, that all requests have in common: 0 to 1."""
    turns: int = 1
    """Turns of a conversation: each next prompt holds the answers before it. Chat only."""
    trace: str | None = None
    """Absolute path of a trace to replay: one step, each request when the trace says so.
    ``rates`` and ``requests`` are what it comes to."""
    trace_speed: float = 1.0
    """How much faster than recorded the trace is replayed."""
    output_tokens: int = 256
    output_spread: TokenSpread | None = None
    """How the tokens that requests ask for are spread; ``output_tokens`` is their mean."""
    ignore_eos: bool = True
    """Ask vLLM to go on to ``output_tokens``, so that all requests weigh the same."""
    seed: int = 0
    """The same number makes the same prompts; 0 makes others in each session, so that a prefix
    cache that is still warm does not answer for the model."""
    timeout_s: float = 120.0
    stall_s: float = 30.0
    """A stream that has begun and brings no data for this long has stalled; comments and blank
    lines, with which gateways keep a connection open, are no data."""
    retries: int = 0
    """How many times a request that was refused before its first token (no connection, 429, 503)
    is sent again. Its latency counts from the first time."""
    slo: Slo | None = None
    extra_body: dict[str, Any] = {}
    expected: ExpectedBand | None = None
    """What the profile is known to reach; it changes nothing of the load."""


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request as it ended. Times of day are monotonic stamps here, ``*_s`` are durations."""

    request: int
    step: int
    concurrency: int
    scheduled: float
    """Monotonic moment at which it was due (closed loop: when its slot became free)."""
    sent: float
    """Monotonic moment just before its bytes went to the socket."""
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int = 0
    """From ``usage``; without it, chunks that carry a token."""
    tokens_in_window: int = 0
    """Output tokens that arrived inside the window of its step."""
    counted: bool = False
    """It was sent inside the window, so its latency counts."""
    outcome: Outcome = Outcome.OK
    detail: str = ""
    """For a failure: status and the head of the body, or the exception, without control
    sequences."""
    usage_missing: bool = False
    """The server sent no ``usage``, so tokens are chunks."""
    conversation: int | None = None
    """Number of the first request of its conversation, where there are several turns."""
    turn: int | None = None
    """Which turn of it, from 1."""
    retries: int = 0
    """How many times it was sent again; ``detail`` says what the first times met."""


class StepResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """What a step came to; the definitions are in ``docs`` of the columns and DESIGN 7.

    ``time_s`` is the moment at which the window opened, in seconds since the session's start.
    """

    step: int
    concurrency: int | None
    request_rate: float | None = None
    time_s: float
    duration_s: float
    """Length of the window."""
    elapsed_s: float
    """From the step's first send to its last token: start and tail included."""
    requests_ok: int = 0
    requests_failed: int = 0
    output_tokens: int = 0
    """All tokens of all requests of the step, in the window or not."""
    output_tokens_per_s: float = 0.0
    """Tokens that arrived inside the window, by its length."""
    prompt_tokens_per_s: float | None = None
    goodput_per_s: float | None = None
    ttft_p50_s: float | None = None
    ttft_p90_s: float | None = None
    ttft_p99_s: float | None = None
    itl_p50_s: float | None = None
    itl_p90_s: float | None = None
    itl_p99_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p90_s: float | None = None
    tpot_p99_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p90_s: float | None = None
    e2e_p99_s: float | None = None
    client_bound: bool = False
    """The client, not the server, was the limit: the step does not count for the knee."""
    peak_temperature_celsius: float | None = None
    min_sm_clock_mhz: float | None = None
    peak_memory_used_bytes: int | None = None
    peak_total_power_watts: float | None = None
    throttle_thermal_s: float | None = None
    energy_joules: float | None = None
    joules_per_output_token: float | None = None
    net_joules_per_output_token: float | None = None
    """Without what the cards draw when nothing is asked of them."""
    retries: int = 0
    """How many times requests were sent again, on top of the outcomes that are counted."""


class LoadState(StrEnum):
    """What the load does now."""

    IDLE = "idle"
    WARMUP = "warmup"
    """A step's load runs; its window is not open yet."""
    RUNNING = "running"
    """A step's window is open."""
    PAUSED = "paused"
    DRAINING = "draining"
    """Nothing new is sent; what is in flight may end."""


class LoadMode(StrEnum):
    """Who decides about the next step."""

    NONE = "none"
    RAMP = "ramp"
    MANUAL = "manual"
