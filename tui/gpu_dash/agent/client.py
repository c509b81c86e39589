"""The other end of the agent's socket: for a viewer and for a command."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator

import msgspec

from gpu_dash import __version__
from gpu_dash.agent.home import AgentHome
from gpu_dash.agent.store import Store
from gpu_dash.model.commands import (
    PROTOCOL,
    Command,
    Control,
    FromAgent,
    Hello,
    Published,
    Refused,
    Reply,
    Request,
    SnapshotSent,
    Welcome,
)
from gpu_dash.model.errors import AgentError
from gpu_dash.model.frames import encode_frame, read_frames

HELLO_TIMEOUT_S = 5.0
REPLY_TIMEOUT_S = 120.0

_store_decoder = msgspec.msgpack.Decoder(Store)


def store_of(message: SnapshotSent) -> Store:
    """The store that a snapshot carries."""
    return _store_decoder.decode(message.snapshot)


class AgentConnection:
    """A connection whose hello has been answered.

    A viewer iterates over :meth:`messages`; anyone may :meth:`ask`. Both may go on at once, as
    long as somebody iterates or asks: replies are sorted out of the one stream.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, welcome: Welcome
    ) -> None:
        self.welcome = welcome
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._messages: asyncio.Queue[SnapshotSent | Published | Control | None] = asyncio.Queue(
            maxsize=256
        )
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(
        cls, home: AgentHome, *, role: str = "command", read_only: bool = False
    ) -> AgentConnection:
        """Connect and say hello.

        Args:
            home: which agent.
            role: ``viewer`` to get the snapshot and events, ``command`` for replies alone.
            read_only: a viewer that never wants the controls.

        Raises:
            AgentError: nobody answers there, or the agent is too old or too new.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(str(home.socket_path))
        except OSError as error:
            raise AgentError(
                f"no agent answers at {home.socket_path} ({error.strerror}); "
                "start one with gpu-dash"
            ) from error
        hello = Hello(protocol=PROTOCOL, version=__version__, role=role, read_only=read_only)
        writer.write(encode_frame(hello))
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                answer = await _first_frame(reader)
        except (TimeoutError, OSError, EOFError, msgspec.DecodeError) as error:
            writer.close()
            raise AgentError(
                f"the agent at {home.socket_path} does not answer; "
                "see gpu-dash status, or end it and start gpu-dash again"
            ) from error
        if isinstance(answer, Welcome):
            return cls(reader, writer, answer)
        writer.close()
        reason = answer.reason if isinstance(answer, Refused) else "its first words are not ours"
        raise AgentError(f"the agent at {home.socket_path} refused: {reason}")

    async def ask(self, command: Command, *, timeout_s: float = REPLY_TIMEOUT_S) -> Reply:
        """Send a command and wait for its reply.

        Raises:
            AgentError: the connection ended, or no reply came in ``timeout_s``.
        """
        number = next(self._ids)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._writer.write(encode_frame(Request(id=number, command=command)))
            await self._writer.drain()
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError as error:
            raise AgentError(f"the agent took more than {timeout_s:g} s to answer") from error
        except OSError as error:
            raise AgentError("the connection to the agent ended") from error
        finally:
            self._waiting.pop(number, None)

    async def messages(self) -> AsyncIterator[SnapshotSent | Published | Control]:
        """Snapshot, events and changes of control, until the agent or the connection ends."""
        while (message := await self._messages.get()) is not None:
            yield message

    async def close(self) -> None:
        """End the connection; safe to call twice."""
        self._reading.cancel()
        self._writer.close()
        await asyncio.gather(self._reading, return_exceptions=True)
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            async for message in read_frames(reader, FromAgent):
                if isinstance(message, Reply):
                    future = self._waiting.get(message.id)
                    if future is not None and not future.done():
                        future.set_result(message)
                elif isinstance(message, SnapshotSent | Published | Control):
                    await self._messages.put(message)
        except (OSError, AgentError):
            pass
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(AgentError("the connection to the agent ended"))
            self._end_messages()

    def _end_messages(self) -> None:
        while self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(None)


async def _first_frame(reader: asyncio.StreamReader) -> object:
    """Exactly one frame, leaving what follows it in the reader."""
    length = int.from_bytes(await reader.readexactly(4), "little")
    return msgspec.msgpack.decode(await reader.readexactly(length), type=FromAgent)
