"""Sends responses in order, with records straight from their files (`sendfile`).

asyncio's `loop.sendfile` makes one whole transfer, and uvloop has none. So the transport writes
bytes, and file regions go to its socket only while the transport's buffer is empty. When the socket
is full, a piece is read into the transport's buffer, so that the connection's owner gets
`pause_writing`, and calls `send_more` from `resume_writing`. Over TLS the kernel cannot send files:
pieces are read and written until the transport's buffer is full.

A fetch costs the broker a third of what it costs with copies (docs/decisions/0023).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Any, Final

from kafkapy.storage.disk_errors import DESCRIPTOR_ERRNOS
from kafkapy.storage.file_records import FileRegion

logger = logging.getLogger("kafka.network.SocketServer")

FIRST_BYTES: Final = 1 << 14
"""The bytes of a region that are read and sent together with the header before it, which saves a
packet and a wake-up.
"""
WAITING_BYTES: Final = 1 << 16
"""The bytes of a region that are read into the transport's buffer while the socket is full."""


def has_region(parts: list[Any]) -> bool:
    """Whether a part of a response is a file region."""
    return any(type(part) is FileRegion for part in parts)


def hold_regions(parts: list[Any]) -> None:
    """Keep the files of unsent regions open, while descriptors are free. Otherwise a region can be
    sent only as long as its log has the file.

    Raises:
        OSError: a file is gone.
    """
    for part in parts:
        if type(part) is FileRegion and len(part):
            try:
                part.hold()
            except OSError as error:
                if error.errno not in DESCRIPTOR_ERRNOS:
                    raise


class FileRegionSender:
    """Writes to one transport in order. `high_water_bytes` is its limit while no region is sent."""

    __slots__ = ("_fd", "_high_water_bytes", "_is_closing", "_is_tls", "_transport", "_unsent")

    def __init__(self, transport: Any, high_water_bytes: int) -> None:
        self._transport = transport
        # None if the socket does not send the written bytes as they are: TLS, and the simulator.
        socket = transport.get_extra_info("socket")
        self._is_tls = transport.get_extra_info("sslcontext") is not None
        self._fd: int | None = None if socket is None or self._is_tls else socket.fileno()
        self._high_water_bytes = high_water_bytes
        self._unsent: deque[Any] = deque()
        self._is_closing = False

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that were not passed to the transport yet."""
        return sum(map(len, self._unsent))

    def send(self, parts: list[Any]) -> None:
        """Send bytes and regions, after those that are not sent yet."""
        if self._unsent:
            self._unsent += parts
        elif not has_region(parts):
            self._transport.writelines(parts)
        else:
            self._unsent += parts
            self.send_more()

    def close(self) -> None:
        """Close the transport after everything is sent."""
        self._is_closing = True
        if not self._unsent:
            self._transport.close()

    def send_more(self) -> None:
        """Send as much as the socket accepts."""
        unsent = self._unsent
        if not unsent:
            return
        transport = self._transport
        if transport.is_closing():
            unsent.clear()
            return
        # All is written at once, or `pause_writing` is called: a region must follow sent bytes.
        # Over TLS the transport writes all, and its limit must not be below `high_water_bytes`.
        limit_bytes = self._high_water_bytes + 1 if self._is_tls else 1
        if not self._is_tls:
            transport.set_write_buffer_limits(0)
        try:
            while unsent and transport.get_write_buffer_size() < limit_bytes:
                self._send_next()
        except OSError as error:
            logger.warning("Closing a connection whose records cannot be sent: %s", error)
            unsent.clear()
            transport.abort()
            return
        if not unsent:
            if not self._is_tls:
                transport.set_write_buffer_limits(self._high_water_bytes)
            if self._is_closing:
                transport.close()

    def _send_next(self) -> None:
        """Write the bytes before the next region together with its first piece, or send a piece of
        it.
        """
        unsent = self._unsent
        if type(unsent[0]) is FileRegion:
            self._send_some(unsent[0])
        else:
            together = []
            while unsent and type(unsent[0]) is not FileRegion:
                together.append(unsent.popleft())
            if unsent:
                # Over TLS, pieces of whole records.
                size = WAITING_BYTES - sum(map(len, together)) if self._is_tls else FIRST_BYTES
                together.append(unsent[0].take(max(size, FIRST_BYTES)))
            # asyncio's `writelines` of 3.12 and 3.13 never calls `pause_writing` (CVE-2024-12254).
            self._transport.write(b"".join(together))
        if unsent and not len(unsent[0]):
            unsent.popleft()

    def _send_some(self, region: FileRegion) -> None:
        if self._fd is None:
            self._transport.write(region.take(WAITING_BYTES if self._is_tls else len(region)))
            return
        try:
            region.send(self._fd)
        except BlockingIOError:
            self._transport.write(region.take(WAITING_BYTES))
