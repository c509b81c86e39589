"""Commands: what a person asks for. The effect comes back as an event, the reply only says
whether the command was taken."""

from __future__ import annotations

from typing import Any

import msgspec

from gpu_dash.model.events import Event
from gpu_dash.model.headers import Headers
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.profile import Profile
from gpu_dash.model.server import ProcessIdentity

PROTOCOL = 1
"""Raised when a frame of an older side would be misread; the hello compares it."""


class _Asks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    pass


class Launch(_Asks, frozen=True, kw_only=True):
    """Start a server from a profile; begins a session."""

    profile: Profile
    environment: dict[str, str]
    """The environment of the person's shell; kept in memory only."""
    folder: str
    """Working directory of the person's shell."""
    plan: LoadPlan | None = None
    """The ramp to offer; the profile's own if left out."""
    label: str = ""
    session_folder: str | None = None
    """Absolute path of a new or empty folder; the agent's own sessions folder if left out."""
    gpu_source: str | None = None
    ramp_when_ready: bool = False
    """Begin the ramp as soon as the server is ready."""
    force: bool = False
    """Launch although the pre-flight says no."""
    headers: Headers = Headers()
    """Further headers of the requests; in memory only."""


class Watch(_Asks, frozen=True, kw_only=True):
    """Watch and load a server that somebody else started; begins a session."""

    base_url: str
    model: str | None = None
    """Asked from ``/v1/models`` if left out."""
    api_key: str | None = None
    headers: Headers = Headers()
    """Further headers of the requests; in memory only."""
    log: str | None = None
    """Absolute path of the log to follow."""
    log_command: tuple[str, ...] = ()
    """A command that prints the log and goes on, where it is no file."""
    process: ProcessIdentity | None = None
    """The server's process on this host: it is taken under supervision, its end is noticed and
    it can be stopped."""
    plan: LoadPlan | None = None
    label: str = ""
    session_folder: str | None = None
    gpu_source: str | None = None


class StopServer(_Asks, frozen=True, kw_only=True):
    """Stop the load, then the server."""


class StartRamp(_Asks, frozen=True, kw_only=True):
    """Begin the ramp at its first step."""

    plan: LoadPlan | None = None


class SetConcurrency(_Asks, frozen=True, kw_only=True):
    """Change the load by hand; begins a new step and ends the ramp. 0 is :class:`StopLoad`."""

    concurrency: int


class SetRate(_Asks, frozen=True, kw_only=True):
    """Change the load by hand to an open loop of so many requests per second; begins a new step
    and ends the ramp."""

    rate: float


class PauseLoad(_Asks, frozen=True, kw_only=True):
    """Send nothing new; the step ends. :class:`ResumeLoad` begins the next one where it was."""


class ResumeLoad(_Asks, frozen=True, kw_only=True):
    """Go on after :class:`PauseLoad`."""


class StopLoad(_Asks, frozen=True, kw_only=True):
    """End the load: what is in flight is cancelled."""


class TakeControl(_Asks, frozen=True, kw_only=True):
    """Become the viewer whose keys count; the one that had it becomes read-only."""


class StopAgent(_Asks, frozen=True, kw_only=True):
    """End the agent. Without ``keep_server`` it stops load and server first."""

    keep_server: bool = False


class AskStatus(_Asks, frozen=True, kw_only=True):
    """What ``gpu-dash status`` shows; the reply's ``data`` is an object for JSON."""


Command = (
    Launch
    | Watch
    | StopServer
    | StartRamp
    | SetConcurrency
    | SetRate
    | PauseLoad
    | ResumeLoad
    | StopLoad
    | TakeControl
    | StopAgent
    | AskStatus
)


class Hello(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """The first frame of a client."""

    protocol: int
    version: str
    role: str
    """``viewer`` (gets snapshot and events) or ``command`` (only replies)."""
    read_only: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command with the number that its reply carries."""

    id: int
    command: Command


FromClient = Hello | Request


class Welcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """The agent's answer to the hello."""

    protocol: int
    version: str
    agent: str
    """``main``, ``run-PID`` or ``demo-PID``."""
    pid: int


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The agent's answer to a hello it does not take; the connection ends."""

    reason: str


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Whether a command was taken."""

    id: int
    ok: bool
    error: str = ""
    exit_code: int = 0
    """What a command line should leave with when it was not."""
    data: Any = None


class Published(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An event with its place in the one order."""

    seq: int
    event: Event


class SnapshotSent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """All that the store knows, as bytes of its own msgpack
    (:class:`gpu_dash.agent.store.Snapshot`); events after ``seq`` follow.

    Sent at the start, and again to a viewer that did not read for a while.
    """

    seq: int
    snapshot: msgspec.Raw


class Control(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Who has the controls, told to each viewer when it changes."""

    yours: bool
    viewers: int


FromAgent = Welcome | Refused | Reply | Published | SnapshotSent | Control
