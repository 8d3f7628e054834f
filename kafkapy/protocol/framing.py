"""Cutting a stream of bytes into frames: an i32 size, then so many bytes.

    buffer = reader.get_buffer()          # where the next received bytes go
    frames = reader.bytes_received(n)     # the frames that are complete now

Bytes are received into `scratch`, which many readers of one event loop share. Only a frame that is
not complete moves to a buffer of its own, which grows with the bytes that really arrive: a size
prefix that lies costs nothing.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from kafkapy.common.errors import ProtocolViolation

SIZE_PREFIX: Final = 4
OWN_BUFFER_BYTES_MIN: Final = 64 * 1024
SCRATCH_BYTES_MAX: Final = 1 << 20
"""No scratch is larger. A frame that is lies in a buffer of its own, and keeps its bytes."""
_I32: Final = Layout(">i")
_TLS_HANDSHAKE: Final = 0x1603  # how a ClientHello begins


class FrameReader:
    """One direction of one connection."""

    __slots__ = ("_filled", "_frame_bytes_max", "_own", "_scratch")

    def __init__(self, frame_bytes_max: int, scratch: bytearray | memoryview) -> None:
        """`frame_bytes_max` bounds the size prefix; `scratch` has at least 4 bytes."""
        self._frame_bytes_max = frame_bytes_max
        self._scratch = memoryview(scratch)
        self._own: memoryview | None = None
        self._filled = 0  # bytes of `_own` in use; it is never full

    def allow(self, frame_bytes_max: int) -> None:
        """Bound size prefixes by this from now on."""
        self._frame_bytes_max = frame_bytes_max

    @property
    def awaited_bytes(self) -> int:
        """The size of the frame that has begun to arrive, 0 if there is none or it is not known."""
        if self._own is None or self._filled < SIZE_PREFIX:
            return 0
        size: int = _I32.unpack_from(self._own)[0]
        return size

    def get_buffer(self) -> memoryview:
        """Where to put the next received bytes; never empty."""
        return self._scratch if self._own is None else self._own[self._filled :]

    def bytes_received(self, n: int) -> list[memoryview]:
        """Take `n` bytes put into the buffer last given; returns complete frames, without prefix.

        The frames are views: valid until any reader with the same scratch is given a buffer.

        Raises:
            ProtocolViolation: a size prefix is negative or above `frame_bytes_max`.
        """
        buffer = self._scratch if self._own is None else self._own
        end = self._filled + n
        frames: list[memoryview] = []
        start = 0
        missing = SIZE_PREFIX
        while end - start >= SIZE_PREFIX:
            (size,) = _I32.unpack_from(buffer, start)
            if not 0 <= size <= self._frame_bytes_max:
                guess = ": the peer begins TLS" if size >> 16 == _TLS_HANDSHAKE else ""
                raise ProtocolViolation(
                    f"a frame of {size} bytes (allowed: 0 to {self._frame_bytes_max}){guess}"
                )
            missing = start + SIZE_PREFIX + size - end
            if missing > 0:
                break
            frames.append(buffer[start + SIZE_PREFIX : start + SIZE_PREFIX + size])
            start += SIZE_PREFIX + size
        if start == end:
            self._own = None
            self._filled = 0
        else:
            self._keep(buffer, start, end, missing)
        return frames

    def _keep(self, buffer: memoryview, start: int, end: int, missing: int) -> None:
        """Hold on to the incomplete frame in `buffer[start:end]`."""
        kept = end - start
        self._filled = kept
        if start > 0 or end == len(buffer) or self._own is None:
            # A new buffer, as the old one may hold frames that were just handed out.
            capacity = max(OWN_BUFFER_BYTES_MIN, kept + min(kept, missing))
            self._own = memoryview(bytearray(capacity))
            self._own[:kept] = buffer[start:end]
