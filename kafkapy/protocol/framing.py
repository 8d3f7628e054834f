"""Splits a stream of bytes into frames: an i32 size, then that number of bytes.

    buffer = reader.get_buffer()          # where the next received bytes go
    frames = reader.bytes_received(n)     # the frames that are complete now

Bytes are received into a scratch buffer, which many readers of one event loop share. Only an
incomplete frame moves to a buffer of its own. This is a spare one, or a new one that grows with the
bytes that arrive, so a false size prefix costs nothing.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from kafkapy.common.errors import ProtocolViolation

SIZE_PREFIX: Final = 4
OWN_BUFFER_BYTES_MIN: Final = 64 * 1024
SCRATCH_BYTES_MAX: Final = 1 << 20
"""The largest size of a scratch buffer. A larger frame has a buffer of its own, which later data
does not overwrite."""
SPARE_BUFFERS_MAX: Final = 4
SPARE_BYTES_MAX: Final = 2 << 20
"""Larger buffers are not kept. A batch or a fetch within Kafka's default limits (1 MiB) fits."""
_I32: Final = Layout(">i")
_TLS_HANDSHAKE: Final = 0x1603  # how a ClientHello begins


class ReceiveBuffers:
    """Memory for the readers of one event loop: their scratch, and spare buffers for large frames.

    New buffers for each frame of 1 MB took 45 % of a replica's processor time, because the system
    maps and clears their pages.
    """

    __slots__ = ("_spares", "scratch")

    def __init__(self, scratch_bytes: int) -> None:
        """`scratch_bytes` are at least 4."""
        self.scratch = bytearray(scratch_bytes)
        self._spares: list[bytearray] = []

    def take(self, size: int, new_size: int) -> memoryview:
        """A buffer of `size` bytes, if there is a spare one without views, else a new one of
        `new_size` bytes.
        """
        for index, spare in enumerate(self._spares):
            if len(spare) >= size and not _has_views(spare):
                del self._spares[index]
                return memoryview(spare)[:size]
        # Rounded up, so that it fits the next frame of about this size.
        whole = -(-new_size // OWN_BUFFER_BYTES_MIN) * OWN_BUFFER_BYTES_MIN
        return memoryview(bytearray(whole))[:new_size]

    def give_back(self, view: memoryview) -> None:
        """Make a taken buffer a spare one. It is used again after its last frame is dropped."""
        buffer = view.obj
        assert isinstance(buffer, bytearray)
        if len(buffer) > SPARE_BYTES_MAX:
            return
        spares = self._spares
        spares.append(buffer)
        spares.sort(key=len)
        if len(spares) > SPARE_BUFFERS_MAX:
            del spares[0]


def _has_views(buffer: bytearray) -> bool:
    """Whether a memoryview of `buffer` exists: Python then refuses to resize the buffer."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


class FrameReader:
    """Reads the frames of one direction of one connection."""

    __slots__ = ("_buffers", "_filled", "_frame_bytes_max", "_own", "_scratch")

    def __init__(self, frame_bytes_max: int, buffers: ReceiveBuffers) -> None:
        """`frame_bytes_max` bounds the size prefix."""
        self._frame_bytes_max = frame_bytes_max
        self._buffers = buffers
        self._scratch = memoryview(buffers.scratch)
        self._own: memoryview | None = None
        self._filled = 0  # bytes of `_own` in use; it is never full

    def allow(self, frame_bytes_max: int) -> None:
        """Change the limit of size prefixes."""
        self._frame_bytes_max = frame_bytes_max

    @property
    def awaited_bytes(self) -> int:
        """The size of the frame that has begun to arrive, 0 without one or if it is not known."""
        if self._own is None or self._filled < SIZE_PREFIX:
            return 0
        size: int = _I32.unpack_from(self._own)[0]
        return size

    def get_buffer(self) -> memoryview:
        """The buffer for the next received bytes; never empty."""
        return self._scratch if self._own is None else self._own[self._filled :]

    def bytes_received(self, n: int) -> list[memoryview]:
        """Take `n` bytes in the last buffer of `get_buffer`. Returns complete frames, without
        prefix.

        The frames are views. They are valid until `get_buffer` is called on any reader with the
        same scratch.

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
            self._set_own(None)
            self._filled = 0
        else:
            self._keep(buffer, start, end, missing)
        return frames

    def _keep(self, buffer: memoryview, start: int, end: int, missing: int) -> None:
        """Keep the incomplete frame in `buffer[start:end]`."""
        kept_bytes = end - start
        self._filled = kept_bytes
        if start > 0 or end == len(buffer) or self._own is None:
            # Another buffer, since this one may hold frames that are being returned.
            size = max(OWN_BUFFER_BYTES_MIN, kept_bytes + missing)
            own = self._buffers.take(
                size, max(OWN_BUFFER_BYTES_MIN, kept_bytes + min(kept_bytes, missing))
            )
            own[:kept_bytes] = buffer[start:end]
            self._set_own(own)

    def _set_own(self, own: memoryview | None) -> None:
        if self._own is not None:
            self._buffers.give_back(self._own)
        self._own = own
