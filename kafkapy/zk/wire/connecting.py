"""The first request of a connection and its reply. With 3.3 clients, neither has the last field."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.zk.wire.jute import BOOL, BUFFER, INT, LONG, Codec, Reader, record


class ConnectRequest(NamedTuple):
    """A request for a new session (id 0), or to resume one. `read_only` is None if not sent."""

    protocol_version: int
    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes | None
    read_only: bool | None = None


class ConnectReply(NamedTuple):
    """The connection's session; id 0 if the session to resume has expired."""

    protocol_version: int
    timeout_ms: int
    session_id: int
    password: bytes | None
    read_only: bool | None = None


def _read_flag(reader: Reader) -> bool | None:
    return None if reader.at_end() else BOOL.read(reader)


def _write_flag(out: bytearray, value: bool | None) -> None:
    if value is not None:
        BOOL.write(out, value)


_FLAG: Final = Codec(_read_flag, _write_flag)

CONNECT_REQUEST: Final = record(ConnectRequest, INT, LONG, INT, LONG, BUFFER, _FLAG)
CONNECT_REPLY: Final = record(ConnectReply, INT, INT, LONG, BUFFER, _FLAG)
