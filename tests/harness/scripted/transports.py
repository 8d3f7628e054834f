"""A socket's transport without a socket."""

from __future__ import annotations

from typing import Any


class FakeTransport:
    """Records the calls of a connection to its transport."""

    def __init__(self, host: str = "10.0.0.1") -> None:
        self.host = host
        self.sent = b""
        self.reading = True
        self.closing = False
        self.aborted = False
        self.unsent = 0  # bytes that the peer does not take
        self.socket: Any = None

    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self.host, 1234), "socket": self.socket}.get(name)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        self.sent += data

    def writelines(self, parts: list[bytes]) -> None:
        self.sent += b"".join(parts)

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True
