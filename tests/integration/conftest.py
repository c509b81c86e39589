"""What several of these tests run on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gpu_dash.agent.home import MAIN, AgentHome
from gpu_dash.agent.spawn import ensure_agent
from tests.integration.commands import gpu_dash


@pytest.fixture
async def main_home() -> AsyncIterator[AgentHome]:
    """A main agent; whatever it runs is stopped at the end."""
    home = AgentHome.named(MAIN)
    await ensure_agent(home, "sim")
    yield home
    done = await asyncio.to_thread(gpu_dash, "stop", "--all")
    assert done.returncode == 0, done.stderr
