"""Whether a server that failed is started again, and when; and what of it outlives an agent."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gpu_dash.model.commands import Launch
from gpu_dash.model.duration import parse_duration
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.profile import Profile

STEADY_S = 300.0
"""A server that was ready for so long failed for a new reason: counting begins again."""
LONGEST_DELAY_S = 300.0


class RestartPolicy:
    """Back-off that doubles, and a limit: a server that crashes in a loop is left alone.

    Args:
        limit: how many starts follow a failure before it is given up; 0: none.
        delay_s: before the first of them.
        count: how many there were already.
    """

    def __init__(self, limit: int, delay_s: float, count: int = 0) -> None:
        self.limit = limit
        self.count = count
        """Starts that followed the first failure."""
        self._delay_s = delay_s

    @classmethod
    def of(cls, profile: Profile, count: int = 0) -> RestartPolicy:
        """What a profile says."""
        server = profile.server
        return cls(server.restarts, parse_duration(server.restart_delay), count)

    def next_delay_s(self, ready_for_s: float) -> float | None:
        """Seconds until the next start; ``None``: it is given up.

        Args:
            ready_for_s: how long the server that failed had been ready.
        """
        if ready_for_s >= STEADY_S:
            self.count = 0
        if self.count >= self.limit:
            return None
        self.count += 1
        delay: float = self._delay_s * 2 ** (self.count - 1)
        return min(delay, LONGEST_DELAY_S)


class RestartRecord(msgspec.Struct, frozen=True):
    """What the next agent needs to start the server again: goes into the state file, so without
    the environment, which the running server itself still has."""

    profile: Profile
    folder: str
    plan: LoadPlan | None
    label: str
    gpu_source: str | None
    force: bool
    count: int

    @classmethod
    def of(cls, command: Launch, policy: RestartPolicy) -> RestartRecord | None:
        """``None`` for a launch that is never repeated."""
        if not policy.limit or command.session_folder is not None:
            return None
        server = msgspec.structs.replace(command.profile.server, env={})
        return cls(
            profile=msgspec.structs.replace(command.profile, server=server),
            folder=command.folder,
            plan=command.plan,
            label=command.label,
            gpu_source=command.gpu_source,
            force=command.force,
            count=policy.count,
        )

    def command(self, environment: Mapping[str, str]) -> Launch:
        """The launch again, in the environment that its server was started with."""
        return Launch(
            profile=self.profile,
            environment=dict(environment),
            folder=self.folder,
            plan=self.plan,
            label=self.label,
            gpu_source=self.gpu_source,
            force=self.force,
        )
