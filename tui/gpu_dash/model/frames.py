"""Frames: how structs cross a pipe or a socket.

A frame is a 4-byte little-endian length and that many bytes of msgpack. All of gpu-dash's own
processes (agent, viewers, sampler, load workers) speak it.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from gpu_dash.model.errors import AgentError, UsageError

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()

T = TypeVar("T")


def encode_frame(message: Any) -> bytes:
    """A struct as a frame.

    Raises:
        UsageError: a whole number in it has more than 64 bits.
    """
    try:
        body = _encoder.encode(message)
    except OverflowError as error:
        raise UsageError("a number is larger than 64 bits; write a smaller one") from error
    return _LENGTH.pack(len(body)) + body


class FrameDecoder(Generic[T]):
    """Cuts a byte stream into frames and decodes them as one type (or union).

    Args:
        kind: what the frames hold; anything :mod:`msgspec` can decode.
    """

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """The structs that became whole with these bytes.

        Raises:
            AgentError: a frame is too long or does not decode: the other side is of another
                version or is no gpu-dash process.
        """
        self._pending += data
        start = 0
        try:
            while len(self._pending) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._pending, start)
                if length > MAX_FRAME_BYTES:
                    raise AgentError(f"a frame of {length} bytes: the other side is not gpu-dash")
                end = start + _LENGTH.size + length
                if len(self._pending) < end:
                    break
                body = bytes(self._pending[start + _LENGTH.size : end])
                start = end
                try:
                    yield self._decoder.decode(body)
                except msgspec.DecodeError as error:
                    raise AgentError(
                        f"a frame that does not decode ({error}): the versions differ"
                    ) from error
        finally:
            del self._pending[:start]


async def read_frames(reader: asyncio.StreamReader, kind: Any) -> Any:
    """Yield the structs of a stream until it ends (an async iterator)."""
    decoder: FrameDecoder[Any] = FrameDecoder(kind)
    while data := await reader.read(65536):
        for message in decoder.feed(data):
            yield message


def write_frame(stream: BinaryIO, message: Any) -> None:
    """Write one frame and flush it; for a child's blocking pipe."""
    stream.write(encode_frame(message))
    stream.flush()
