"""The unix socket: hello, snapshot, events, commands.

One account: the socket lies in a 0700 folder, is 0600 itself, and the peer's user id is checked.
There is no network listener.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct

from gpu_dash import __version__
from gpu_dash.agent.agent import Agent
from gpu_dash.agent.hub import Viewer
from gpu_dash.model.commands import (
    PROTOCOL,
    FromClient,
    Hello,
    Refused,
    Request,
    StopAgent,
    TakeControl,
    Welcome,
)
from gpu_dash.model.errors import AgentError
from gpu_dash.model.frames import encode_frame, read_frames

_UCRED = struct.Struct("3i")
"""``struct ucred`` of unix(7): pid, uid, gid."""
WRITE_BUFFER_BYTES = 256 * 1024


class Service:
    """Serves one agent to any number of viewers and commands."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. The lock of the agent's home is held, so a socket left there is nobody's."""
        path = self._agent.home.socket_path
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        previous = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._connected, path=str(path))
        except OSError as error:
            raise AgentError(f"{path}: {error.strerror}; set XDG_STATE_HOME elsewhere") from error
        finally:
            os.umask(previous)

    async def close(self) -> None:
        """Stop listening, end every connection and remove the socket."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        with contextlib.suppress(OSError):
            self._agent.home.socket_path.unlink()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if _peer_uid(writer) == os.geteuid():
                await self._serve(reader, writer)
        except (OSError, AgentError, asyncio.CancelledError):
            # The peer is gone or speaks another protocol, or the agent ends: either way this
            # connection is over and nothing else is touched.
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        messages = read_frames(reader, FromClient)
        hello = await anext(messages, None)
        if not isinstance(hello, Hello):
            return
        if hello.protocol != PROTOCOL:
            older = "client" if hello.protocol < PROTOCOL else "agent"
            reason = (
                f"the agent is gpu-dash {__version__}, the client {hello.version}; "
                f"the {older} is too old. To go on with this agent use its version, or end it "
                "with its own gpu-dash stop --agent (the server goes on)"
            )
            writer.write(encode_frame(Refused(reason=reason)))
            await writer.drain()
            return
        writer.write(
            encode_frame(
                Welcome(
                    protocol=PROTOCOL,
                    version=__version__,
                    agent=self._agent.home.name,
                    pid=os.getpid(),
                )
            )
        )
        hub = self._agent.hub
        viewer = Viewer(hub, writer, read_only=hello.read_only)
        if hello.role != "viewer":
            await self._take_commands(messages, viewer, is_viewer=False)
            return
        hub.add_viewer(viewer)
        sending = asyncio.create_task(viewer.send())
        taking = asyncio.create_task(self._take_commands(messages, viewer, is_viewer=True))
        try:
            await asyncio.wait({sending, taking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hub.remove_viewer(viewer)
            for task in (sending, taking):
                task.cancel()
            await asyncio.gather(sending, taking, return_exceptions=True)

    async def _take_commands(self, messages: object, viewer: Viewer, *, is_viewer: bool) -> None:
        """Answer each request in turn; several may be under way (a stop takes long)."""
        under_way: set[asyncio.Task[None]] = set()
        try:
            async for message in messages:  # type: ignore[attr-defined]
                if isinstance(message, Request):
                    task = asyncio.create_task(self._answer(message, viewer, is_viewer))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
        finally:
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _answer(self, request: Request, viewer: Viewer, is_viewer: bool) -> None:
        command = request.command
        if isinstance(command, TakeControl):
            if is_viewer and not viewer.read_only:
                self._agent.hub.give_control(viewer)
            reply = self._agent.taken(request.id)
        elif is_viewer and not viewer.has_control:
            reply = self._agent.refused(
                request.id, "another terminal has the controls; press c to take them"
            )
        else:
            reply = await self._agent.handle(request.id, command)
        viewer.reply(reply)
        if isinstance(command, StopAgent) and reply.ok:
            self._agent.end_soon()


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    """The user id of the process at the other end."""
    peer: socket.socket = writer.get_extra_info("socket")
    data = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(data)
    return int(uid)
