"""The server's side of one connection: received bytes, queued replies, the client's identities."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.security.sasl.digest_md5 import DigestMd5Server
from kafkapy.zk.service.permissions import Identity
from kafkapy.zk.service.sessions import Session
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame


class Connection:
    """State of a connection. `event_loop` sends `take()`, then closes if `is_closing`."""

    def __init__(self, address: str, port: int, max_frame_bytes: int, now_ms: int) -> None:
        self.address = address
        self.port = port
        self.opened_ms = now_ms
        self.decoder = FrameDecoder(max_frame_bytes)
        self.session: Session[Connection] | None = None
        self.identities: dict[Identity, None] = {("ip", address): None}
        self.login: DigestMd5Server | None = None
        """The SASL login, once it has begun."""
        self.is_closing = False
        self.is_stalled = False
        """Whether frames wait for a later turn. Until then, nothing is read from the connection."""
        self.unsent_bytes: Callable[[], int] = int
        """Returns the number of bytes that the transport has not sent yet."""
        self.received = 0
        self.sent = 0
        self.last_xid = 0
        self.last_op = "NA"
        self._outbox = bytearray()

    def __str__(self) -> str:
        return f"/{self.address}:{self.port}"

    def send(self, payload: bytes) -> None:
        """Queue a reply or a notification."""
        self._outbox += encode_frame(payload)
        self.sent += 1

    def send_text(self, text: str) -> None:
        """Queue the answer to a four-letter word."""
        self._outbox += text.encode()

    def waiting_bytes(self) -> int:
        """The number of bytes that are queued here or unsent in the transport."""
        return len(self._outbox) + self.unsent_bytes()

    def take(self) -> bytes:
        """Remove and return the queued bytes."""
        data = bytes(self._outbox)
        self._outbox.clear()
        return data
