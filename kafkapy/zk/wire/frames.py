"""Frames: four bytes of length, then a request or a reply."""

from __future__ import annotations

import struct
from typing import Final

from kafkapy.zk.wire.jute import Malformed

LENGTH: Final = struct.Struct(">i")
MAX_BYTES: Final = (1 << 20) - 1
"""The default of `jute.maxbuffer`."""


class FrameDecoder:
    """Cuts received bytes into frames of at most `max_bytes`. If all whole frames are taken after
    each `feed`, it keeps less than one frame.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def head(self) -> bytes:
        """The next four bytes, or as many as there are."""
        return bytes(self._buffer[self._start : self._start + LENGTH.size])

    def next_frame(self) -> bytes | None:
        """The next whole frame, if there is one.

        Raises:
            Malformed: its length is negative or beyond the limit.
        """
        body = self._start + LENGTH.size
        if len(self._buffer) < body:
            return None
        (size,) = LENGTH.unpack_from(self._buffer, self._start)
        if not 0 <= size <= self._max_bytes:
            raise Malformed(f"a frame of {size} bytes, and the limit is {self._max_bytes}")
        end = body + size
        if len(self._buffer) < end:
            return None
        self._start = end
        return bytes(memoryview(self._buffer)[body:end])


def encode_frame(payload: bytes) -> bytes:
    """A payload with its length in front."""
    return LENGTH.pack(len(payload)) + payload
