"""The first request of a connection and its reply; 3.3 clients send neither read-only flag."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.zk.wire.jute import BOOL, BUFFER, INT, LONG, Codec, Reader, record


class ConnectRequest(NamedTuple):
    """A new session (id 0), or one to go on with. `read_only` is None where it was not sent."""

    protocol_version: int
    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes | None
    read_only: bool | None = None


class ConnectReply(NamedTuple):
    """The session that the connection has from now on; id 0: it has expired."""

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
