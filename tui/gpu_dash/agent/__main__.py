"""``python -m gpu_dash.agent``: the agent as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from gpu_dash.agent.agent import Agent
from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.service import Service
from gpu_dash.model.errors import GpuDashError

IDLE_END_S = 120.0
"""An agent that has nothing to look after and nobody who looks ends by itself."""


async def serve(agent: Agent, *, private: bool) -> None:
    """Serve until the agent is told to end (or, private, until stdin closes)."""
    service = Service(agent)
    await agent.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.end_soon)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await service.start()
    if private:
        os.set_blocking(0, False)
        loop.add_reader(0, _end_at_eof, agent)
    else:
        agent.end_when_idle(IDLE_END_S)
    try:
        await agent.ended.wait()
    finally:
        if private:
            loop.remove_reader(0)
        await agent.close(keep_server=agent.keeps_server)
        await service.close()


def main() -> int:
    """Parse the arguments, take the lock, serve."""
    parser = argparse.ArgumentParser(prog="python -m gpu_dash.agent")
    parser.add_argument("--home", required=True, help="main, or the name of a private agent")
    parser.add_argument("--gpu", default="auto", help="source of GPU readings")
    parser.add_argument("--private", action="store_true", help="end when stdin closes")
    arguments = parser.parse_args()
    home = AgentHome.named(arguments.home)
    try:
        lock = home.acquire()
        if lock is None:
            return 0
        agent = Agent(home, gpu_source=arguments.gpu)
        agent.keeps_server = not arguments.private
        asyncio.run(serve(agent, private=arguments.private))
    except GpuDashError as error:
        print(f"gpu-dash agent: {error}", file=sys.stderr)  # noqa: T201 - the agent's own log
        return error.exit_code
    if home.name != MAIN:
        home.remove()
    return 0


def _end_at_eof(agent: Agent) -> None:
    if not os.read(0, 4096):
        agent.end_soon()


if __name__ == "__main__":
    sys.exit(main())
