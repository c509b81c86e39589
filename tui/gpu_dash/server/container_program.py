"""Calls of docker, podman and compose: their words are lists, their refusals are told as they say
them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from gpu_dash.model.errors import ServerError
from gpu_dash.model.text import strip_controls

_VERBS = frozenset({"run", "up", "ps", "wait", "stop", "rm"})


async def call(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command to its end.

    Returns:
        what it printed.

    Raises:
        ServerError: it cannot be started, or it refused: with the last line that it said.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
        )
    except OSError as error:
        raise ServerError(f"{words[0]}: {error.strerror}") from error
    output, said = await process.communicate()
    if process.returncode != 0:
        last_line = said.decode(errors="replace").strip().rpartition("\n")[2]
        verb = next((word for word in words[1:] if word in _VERBS), words[0])
        raise ServerError(f"{words[0]} {verb}: {strip_controls(last_line)}")
    return output.decode(errors="replace").strip()
