"""What the agent and a load worker say to each other, frame by frame.

Down the worker's stdin::

    Configure → SetLoad, Window, Cancel …          the end of stdin ends the worker

Up its stdout::

    WorkerReady → Started, Ended, StepDrained, Tick …

The agent decides (which step, which window), the worker does and counts. A window is told before
it opens, so that the worker knows it when a request ends; only a window that a key closes is
told at that moment. Frames of one step come in order: ``Started`` of a request before its
``Ended``, and ``StepDrained`` after the last ``Ended`` of its step.
"""

from __future__ import annotations

import msgspec

from gpu_dash.model.load import LoadPlan, RequestRecord, Target


class Configure(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What every request from now on asks, and where it goes. The only frame with the key."""

    target: Target
    plan: LoadPlan
    first_request: int
    """Requests are numbered from here; a worker that is further already goes on."""
    request_stride: int = 1
    """Each number is so much above the one before: no two workers give the same."""
    request_offset: int = 0
    """The remainder of each number by the stride."""


class SetLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """A step begins, and the one before sends nothing more.

    What is in flight goes on to its end under its own step and takes part in the concurrency;
    where there is less than asked, requests start at once.
    """

    step: int
    concurrency: int
    """Requests in flight, in all workers. 0 without a rate: this step sends nothing more, and no
    other begins."""
    places: int | None = None
    """Requests in flight in this worker; all of them if left out."""
    rate: float | None = None
    """Requests per second of all workers instead: an open loop."""
    begins_at: float = 0.0
    """Open loop: the moment from which its arrivals are counted, the same for all workers."""
    replays: bool = False
    """The arrivals are those of the plan's trace."""
    spread_s: float = 0.0
    """Fill the places evenly over this time, so that the streams do not march in step."""
    requests: int | None = None
    """Send exactly so many and no more."""
    share_index: int = 0
    """Of the step's requests this worker sends each ``share_count``-th, from this one on: what
    the workers send together does not depend on how many they are."""
    share_count: int = 1

    @property
    def sends(self) -> bool:
        """It asks for requests."""
        return self.concurrency > 0 or self.rate is not None


class Window(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """The window of a step; a later frame for the same step replaces it."""

    step: int
    opens_at: float
    closes_at: float | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End at once all that is in flight, and send nothing more."""


ToWorker = Configure | SetLoad | Window | Cancel


class WorkerReady(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker's first frame: what costs time to load is loaded."""

    open_files: int
    """Its limit of open files, raised as far as it goes: more requests cannot be in flight."""


class StartedRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request that is on its way."""

    request: int
    step: int
    concurrency: int
    at: float


class Started(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Requests that were started since the last such frame, of any step."""

    requests: tuple[StartedRequest, ...]


class Ended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Requests of one step that ended since the last such frame."""

    step: int
    requests: tuple[RequestRecord, ...]
    gaps: dict[int, int] = {}
    """Gaps between tokens of the counted ones: bucket of the histogram to count."""


class StepDrained(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A step sends nothing more and all its requests have ended: nothing of it will come."""

    step: int


class Tick(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """What happened since the last tick; sent while there is load, and once with zeros after.

    Durations come as histograms, so that the ticks of several workers can be added up.
    """

    at: float
    interval_s: float
    in_flight: int
    path: str
    """Name of the transport in use."""
    output_tokens: int = 0
    requests_ok: int = 0
    requests_failed: int = 0
    ttft: dict[int, int] = {}
    gaps: dict[int, int] = {}
    send_lags: dict[int, int] = {}
    """How much later than due the requests were sent."""
    loop_lag_s: float = 0.0
    cpu_s: float = 0.0
    """Processor time of the workers in the interval."""
    busiest_cpu_s: float = 0.0
    """That of the worker that used most."""


FromWorker = WorkerReady | Started | Ended | StepDrained | Tick
