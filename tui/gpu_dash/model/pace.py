"""Doing something at even intervals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


async def at_intervals(interval_s: float) -> AsyncIterator[None]:
    """Wake at each end of an interval. By deadline: what is done between takes nothing from the
    pace, and what took longer than an interval is not made up for.

    Args:
        interval_s: the interval, in seconds.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due = max(due + interval_s, loop.time())
        await asyncio.sleep(due - loop.time())
        yield
