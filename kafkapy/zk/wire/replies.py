"""Replies: a header, then after a success a body whose layout follows from the operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafkapy.zk.wire.codes import NOTIFICATION_XID, ErrorCode, OpCode
from kafkapy.zk.wire.jute import (
    BUFFER,
    INT,
    STRING,
    Codec,
    Reader,
    packed,
    record,
)
from kafkapy.zk.wire.multi import multi
from kafkapy.zk.wire.records import ACLS, CLIENT_INFOS, STAT, STRINGS, Acl, ClientInfo, Stat


class ReplyHeader(NamedTuple):
    """The request's xid, the zxid of the last transaction, and the error code."""

    xid: int
    zxid: int
    error: int


class EmptyReply(NamedTuple):
    """delete, check, setWatches, removeWatches and closeSession."""


class PathReply(NamedTuple):
    """create and sync."""

    path: str


class CreatedReply(NamedTuple):
    """create2."""

    path: str
    stat: Stat


class StatReply(NamedTuple):
    """exists, setData and setACL."""

    stat: Stat


class DataReply(NamedTuple):
    """getData."""

    data: bytes | None
    stat: Stat


class AclReply(NamedTuple):
    """getACL."""

    acl: tuple[Acl, ...]
    stat: Stat


class NamesReply(NamedTuple):
    """getChildren and getEphemerals."""

    names: tuple[str, ...]


class ChildrenReply(NamedTuple):
    """getChildren2."""

    names: tuple[str, ...]
    stat: Stat


class NumberReply(NamedTuple):
    """getAllChildrenNumber; addWatch and failed parts of a multi: an error."""

    number: int


class WhoAmIReply(NamedTuple):
    """whoAmI."""

    identities: tuple[ClientInfo, ...]


class SaslReply(NamedTuple):
    """sasl: the server's token."""

    token: bytes | None


class WatcherEvent(NamedTuple):
    """A notification: the event, the state of the connection, the node."""

    kind: int
    state: int
    path: str


class MultiReply(NamedTuple):
    """multi and multiRead: each operation (-1: it failed) with its part."""

    results: tuple[tuple[int, Reply], ...]


Reply = (
    EmptyReply
    | PathReply
    | CreatedReply
    | StatReply
    | DataReply
    | AclReply
    | NamesReply
    | ChildrenReply
    | NumberReply
    | WhoAmIReply
    | SaslReply
    | WatcherEvent
    | MultiReply
)

HEADER: Final = packed(ReplyHeader, ">iqi")
EVENT: Final = record(WatcherEvent, INT, INT, STRING)

_EMPTY: Final = record(EmptyReply)
_PATH: Final = record(PathReply, STRING)
_CREATED: Final = record(CreatedReply, STRING, STAT)
_STAT: Final = record(StatReply, STAT)
_DATA: Final = record(DataReply, BUFFER, STAT)
_NAMES: Final = record(NamesReply, STRINGS)
_NUMBER: Final = record(NumberReply, INT)

_PARTS: Final[Mapping[int, Codec[Any]]] = {
    OpCode.CREATE: _PATH,
    OpCode.CREATE2: _CREATED,
    OpCode.DELETE: _EMPTY,
    OpCode.SET_DATA: _STAT,
    OpCode.CHECK: _EMPTY,
    OpCode.GET_DATA: _DATA,
    OpCode.GET_CHILDREN: _NAMES,
    OpCode.ERROR: _NUMBER,
}


def _error_of(part: Reply) -> int:
    """The error in the header of a part: the part's own error again, as in ZooKeeper."""
    return part.number if isinstance(part, NumberReply) else ErrorCode.OK


_MULTI: Final = multi(MultiReply, _PARTS, _error_of)

BODIES: Final[Mapping[int, Codec[Any]]] = {
    OpCode.CREATE: _PATH,
    OpCode.DELETE: _EMPTY,
    OpCode.EXISTS: _STAT,
    OpCode.GET_DATA: _DATA,
    OpCode.SET_DATA: _STAT,
    OpCode.GET_ACL: record(AclReply, ACLS, STAT),
    OpCode.SET_ACL: _STAT,
    OpCode.GET_CHILDREN: _NAMES,
    OpCode.SYNC: _PATH,
    OpCode.PING: _EMPTY,
    OpCode.GET_CHILDREN2: record(ChildrenReply, STRINGS, STAT),
    OpCode.MULTI: _MULTI,
    OpCode.CREATE2: _CREATED,
    OpCode.CHECK_WATCHES: _EMPTY,
    OpCode.REMOVE_WATCHES: _EMPTY,
    OpCode.MULTI_READ: _MULTI,
    OpCode.AUTH: _EMPTY,
    OpCode.SET_WATCHES: _EMPTY,
    OpCode.SASL: record(SaslReply, BUFFER),
    OpCode.GET_EPHEMERALS: _NAMES,
    OpCode.GET_ALL_CHILDREN_NUMBER: _NUMBER,
    OpCode.SET_WATCHES2: _EMPTY,
    OpCode.ADD_WATCH: _NUMBER,
    OpCode.WHO_AM_I: record(WhoAmIReply, CLIENT_INFOS),
    OpCode.CLOSE_SESSION: _EMPTY,
}


def encode_reply(header: ReplyHeader, op: int = 0, body: Reply | None = None) -> bytes:
    """A reply without its length. An error, or a reply without a body, is only the header."""
    out = bytearray()
    HEADER.write(out, header)
    if body is not None:
        BODIES[op].write(out, body)
    return bytes(out)


def decode_reply(op: int, frame: bytes) -> tuple[ReplyHeader, Reply | None]:
    """The header, and after a success the body.

    Raises:
        Malformed: the bytes are not a reply to this operation.
    """
    reader = Reader(frame)
    header = HEADER.read(reader)
    return header, None if header.error else BODIES[op].read(reader)


def encode_event(zxid: int, event: WatcherEvent) -> bytes:
    """A notification without its length."""
    out = bytearray()
    HEADER.write(out, ReplyHeader(NOTIFICATION_XID, zxid, ErrorCode.OK))
    EVENT.write(out, event)
    return bytes(out)
