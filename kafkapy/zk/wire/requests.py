"""Requests: a header, then a body whose layout follows from the operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.jute import (
    BOOL,
    BUFFER,
    INT,
    LONG,
    STRING,
    Codec,
    Reader,
    packed,
    record,
)
from kafkapy.zk.wire.multi import multi
from kafkapy.zk.wire.records import ACLS, STRINGS, Acl


class RequestHeader(NamedTuple):
    """The client's number of a request (xid), and the operation."""

    xid: int
    op: int


class CreateRequest(NamedTuple):
    """create, create2 and createContainer."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    flags: int


class CreateTtlRequest(NamedTuple):
    """createTTL."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    flags: int
    ttl: int


class VersionRequest(NamedTuple):
    """delete, and check in a multi; -1 is any version."""

    path: str
    version: int


class WatchedRequest(NamedTuple):
    """exists, getData, getChildren and getChildren2."""

    path: str
    watch: bool


class SetDataRequest(NamedTuple):
    """setData."""

    path: str
    data: bytes | None
    version: int


class PathRequest(NamedTuple):
    """getACL, sync, getEphemerals, getAllChildrenNumber and deleteContainer."""

    path: str


class SetAclRequest(NamedTuple):
    """setACL."""

    path: str
    acl: tuple[Acl, ...]
    version: int


class ReconfigRequest(NamedTuple):
    """reconfig."""

    joining: str
    leaving: str
    members: str
    config_id: int


class WatchKindRequest(NamedTuple):
    """checkWatches, removeWatches (a `WatcherType`) and addWatch (an `AddWatchMode`)."""

    path: str
    kind: int


class AuthRequest(NamedTuple):
    """addauth."""

    kind: int
    scheme: str
    auth: bytes | None


class SetWatchesRequest(NamedTuple):
    """setWatches and setWatches2: the watches of a reconnected client."""

    relative_zxid: int
    data: tuple[str, ...]
    exist: tuple[str, ...]
    child: tuple[str, ...]
    persistent: tuple[str, ...] = ()
    recursive: tuple[str, ...] = ()


class EmptyRequest(NamedTuple):
    """ping, closeSession and whoAmI: the body is ignored."""


class SaslRequest(NamedTuple):
    """sasl: a client's token."""

    token: bytes | None


class MultiRequest(NamedTuple):
    """multi and multiRead: operations with their requests."""

    ops: tuple[tuple[int, Request], ...]


Request = (
    CreateRequest
    | CreateTtlRequest
    | VersionRequest
    | WatchedRequest
    | SetDataRequest
    | PathRequest
    | SetAclRequest
    | ReconfigRequest
    | WatchKindRequest
    | AuthRequest
    | SetWatchesRequest
    | EmptyRequest
    | SaslRequest
    | MultiRequest
)


HEADER: Final = packed(RequestHeader, ">ii")

_CREATE: Final = record(CreateRequest, STRING, BUFFER, ACLS, INT)
_CREATE_TTL: Final = record(CreateTtlRequest, STRING, BUFFER, ACLS, INT, LONG)
_VERSION: Final = record(VersionRequest, STRING, INT)
_WATCHED: Final = record(WatchedRequest, STRING, BOOL)
_SET_DATA: Final = record(SetDataRequest, STRING, BUFFER, INT)
_PATH: Final = record(PathRequest, STRING)
_WATCH_KIND: Final = record(WatchKindRequest, STRING, INT)
_EMPTY: Final = record(EmptyRequest)

# The operations that a multi and a multiRead may contain.
WRITES: Final[Mapping[int, Codec[Any]]] = {
    OpCode.CREATE: _CREATE,
    OpCode.CREATE2: _CREATE,
    OpCode.CREATE_CONTAINER: _CREATE,
    OpCode.CREATE_TTL: _CREATE_TTL,
    OpCode.DELETE: _VERSION,
    OpCode.SET_DATA: _SET_DATA,
    OpCode.CHECK: _VERSION,
}
READS: Final[Mapping[int, Codec[Any]]] = {
    OpCode.GET_DATA: _WATCHED,
    OpCode.GET_CHILDREN: _WATCHED,
}


def _read_watches(reader: Reader) -> SetWatchesRequest:
    return SetWatchesRequest(LONG.read(reader), *[STRINGS.read(reader) for _ in range(3)])


def _write_watches(out: bytearray, value: SetWatchesRequest) -> None:
    LONG.write(out, value.relative_zxid)
    for paths in (value.data, value.exist, value.child):
        STRINGS.write(out, paths)


# A check is part of a multi only, as in ZooKeeper.
BODIES: Final[Mapping[int, Codec[Any]]] = {
    **{op: codec for op, codec in WRITES.items() if op != OpCode.CHECK},
    OpCode.EXISTS: _WATCHED,
    OpCode.GET_DATA: _WATCHED,
    OpCode.GET_ACL: _PATH,
    OpCode.SET_ACL: record(SetAclRequest, STRING, ACLS, INT),
    OpCode.GET_CHILDREN: _WATCHED,
    OpCode.SYNC: _PATH,
    OpCode.PING: _EMPTY,
    OpCode.GET_CHILDREN2: _WATCHED,
    OpCode.MULTI: multi(MultiRequest, WRITES),
    OpCode.RECONFIG: record(ReconfigRequest, STRING, STRING, STRING, LONG),
    OpCode.CHECK_WATCHES: _WATCH_KIND,
    OpCode.REMOVE_WATCHES: _WATCH_KIND,
    OpCode.DELETE_CONTAINER: _PATH,
    OpCode.MULTI_READ: multi(MultiRequest, READS),
    OpCode.AUTH: record(AuthRequest, INT, STRING, BUFFER),
    OpCode.SET_WATCHES: Codec(_read_watches, _write_watches),
    OpCode.SASL: record(SaslRequest, BUFFER),
    OpCode.GET_EPHEMERALS: _PATH,
    OpCode.GET_ALL_CHILDREN_NUMBER: _PATH,
    OpCode.SET_WATCHES2: record(SetWatchesRequest, LONG, *[STRINGS] * 5),
    OpCode.ADD_WATCH: _WATCH_KIND,
    OpCode.WHO_AM_I: _EMPTY,
    OpCode.CLOSE_SESSION: _EMPTY,
}


def decode_header(frame: bytes) -> tuple[RequestHeader, Reader]:
    """The header of a request, and a reader at its body.

    Raises:
        Malformed: the header is incomplete.
    """
    reader = Reader(frame)
    return HEADER.read(reader), reader


def decode_body(op: int, reader: Reader) -> Request:
    """The body of a request whose operation is one of `BODIES`. Bytes after the body are ignored,
    as in ZooKeeper.

    Raises:
        Malformed: the bytes are not such a body.
    """
    body: Request = BODIES[op].read(reader)
    return body


def encode_request(xid: int, op: int, body: Request) -> bytes:
    """A request without its length."""
    out = bytearray()
    HEADER.write(out, RequestHeader(xid, op))
    BODIES[op].write(out, body)
    return bytes(out)
