"""A client of the server within its own process: the ZooKeeper port without a socket.

It sends the same requests as a network client. Each operation ends with a turn of the server: one
fsync, then the replies. Its session does not expire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.zookeeper_service import UNSENT_MAX_BYTES, ZooKeeperService
from kafkapy.zk.watch_table import WatchTable, WatchTarget
from kafkapy.zk.wire.codes import NOTIFICATION_XID, CreateFlag, ErrorCode, OpCode
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Reader
from kafkapy.zk.wire.records import Acl, Stat
from kafkapy.zk.wire.replies import EVENT, HEADER, NumberReply, Reply, decode_reply
from kafkapy.zk.wire.requests import (
    CreateRequest,
    EmptyRequest,
    MultiRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
    encode_request,
)
from kafkapy.zk.wire.requests import Request as WireRequest
from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    Get,
    Multi,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpResult,
    Request,
    Response,
    SessionExpired,
    SetData,
    StoreUnavailable,
    Watch,
    WatchEvent,
    WatchEventType,
    Znode,
    ZnodeStat,
    ZooKeeperError,
)

_OPEN: Final = (Acl(31, "world", "anyone"),)
_REPLY_MAX_BYTES: Final = (1 << 31) - 1
_XID: Final = 1
_FLAGS: Final = {
    CreateMode.PERSISTENT: CreateFlag.PERSISTENT,
    CreateMode.EPHEMERAL: CreateFlag.EPHEMERAL,
    CreateMode.PERSISTENT_SEQUENTIAL: CreateFlag.PERSISTENT_SEQUENTIAL,
}
_KINDS: Final = dict(enumerate(WatchEventType, 1))
_ERRORS: Final[dict[int, type[ZooKeeperError]]] = {
    ErrorCode.NONODE: NoNode,
    ErrorCode.NOCHILDRENFOREPHEMERALS: NoNode,
    ErrorCode.NODEEXISTS: NodeExists,
    ErrorCode.BADVERSION: BadVersion,
    ErrorCode.NOTEMPTY: NotEmpty,
    ErrorCode.SESSIONEXPIRED: SessionExpired,
}


class Server(Protocol):
    """The part of `event_loop.ZooKeeperServer` that is used here."""

    service: ZooKeeperService
    has_failed: bool

    def connect_locally(self, peer: LocalZooKeeper) -> Connection: ...

    def turn(self) -> None: ...

    def remove_connection(self, connection: Connection) -> None: ...


class _Call(NamedTuple):
    """A request whose reply is awaited, and the watch to keep if it succeeds."""

    op: OpCode
    path: str
    body: WireRequest
    watch: Watch | None = None
    target: WatchTarget = WatchTarget.DATA


class LocalZooKeeper:
    """One session within the server's process: `zookeeper.ZooKeeper`."""

    def __init__(self, server: Server) -> None:
        self.on_session_expired: Callable[[], None] | None = None
        self._server = server
        self._decoder = FrameDecoder(_REPLY_MAX_BYTES)
        self._unanswered: deque[_Call] = deque()
        self._replies: list[tuple[int, Reply | None]] = []
        self._watches = WatchTable()
        self._connection = server.connect_locally(self)
        assert self._connection.session is not None
        self._session_id = self._connection.session.session_id

    @property
    def session_id(self) -> int:
        """The id of the session."""
        return self._session_id

    def flush(self) -> None:
        """Handle the queued replies and notifications; then call the watches that fired."""
        fired: list[tuple[Watch, WatchEvent]] = []
        self._decoder.feed(self._connection.take())
        while (frame := self._decoder.next_frame()) is not None:
            reader = Reader(frame)
            header = HEADER.read(reader)
            if header.xid == NOTIFICATION_XID:
                kind, _, path = EVENT.read(reader)
                event = WatchEvent(_KINDS[kind], path)
                fired += [(watch, event) for watch in self._watches.fire(event)]
            else:
                self._handle_reply(frame)
        for watch, event in fired:
            watch(event)

    def end(self) -> None:
        """Do nothing when the server stops: there is no socket to close."""

    async def close(self) -> None:
        """End the session, which deletes its ephemerals."""
        if self._connection.is_closing:
            return
        with suppress(StoreUnavailable):
            self._execute([_Call(OpCode.CLOSE_SESSION, "/", EmptyRequest())])
        self._server.remove_connection(self._connection)

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """A node's data and stat."""
        return _znode(self._answer(_get(path, watch)))

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """A node's stat, if it exists."""
        watched = WatchedRequest(path, watch is not None)
        try:
            reply = self._answer(_Call(OpCode.EXISTS, path, watched, watch))
        except NoNode:
            return None
        return _stat(reply.stat)._replace(children_zxid=reply.stat.pzxid)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The sorted names of a node's children."""
        watched = WatchedRequest(path, watch is not None)
        reply = self._answer(_Call(OpCode.GET_CHILDREN, path, watched, watch, WatchTarget.CHILDREN))
        return sorted(reply.names)

    async def create(self, path: str, data: bytes, mode: CreateMode = CreateMode.PERSISTENT) -> str:
        """Create a node. Returns its path."""
        created_path: str = self._answer(_write(Create(path, data, mode))).path
        return created_path

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> ZnodeStat:
        """Replace a node's data."""
        return _stat(self._answer(_write(SetData(path, data, version))).stat)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        self._answer(_write(Delete(path, version)))

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Apply all operations or none."""
        answer = _results(ops, self._answer(_multi(ops)))
        if isinstance(answer, ZooKeeperError):
            raise answer
        return answer

    async def pipeline(self, requests: Sequence[Request]) -> list[Response]:
        """Send every request in order. They share journal writes."""
        calls = [
            _multi(each.ops) if isinstance(each, Multi) else _get(each.path, each.watch)
            for each in requests
        ]
        return [
            _response(request, code, reply)
            for request, (code, reply) in zip(requests, self._execute(calls), strict=True)
        ]

    def _answer(self, call: _Call) -> Any:
        [(code, reply)] = self._execute([call])
        if code:
            raise _error(code, call.path)
        return reply

    def _execute(self, calls: Sequence[_Call]) -> list[tuple[int, Reply | None]]:
        """The error codes and replies of requests, in their order.

        Raises:
            SessionExpired: the session was closed.
            StoreUnavailable: the journal cannot be written.
        """
        self._check_usable(calls)
        service, connection = self._server.service, self._connection
        # Replies come in the order of the requests, so all requests have the same xid.
        frames = [encode_frame(encode_request(_XID, call.op, call.body)) for call in calls]
        # After the encoding: a request that cannot be encoded gets no reply.
        self._unanswered.extend(calls)
        self._replies = []
        service.handle_data(connection, b"".join(frames))
        while self._unanswered:
            while connection.is_stalled and connection.waiting_bytes() <= UNSENT_MAX_BYTES:
                service.handle_buffered(connection)
            self._server.turn()
            if self._unanswered:
                self._check_usable(calls)
        return self._replies

    def _check_usable(self, calls: Sequence[_Call]) -> None:
        path = calls[0].path if calls else "/"
        if self._server.has_failed:
            raise StoreUnavailable(path, "the embedded store cannot be written")
        if self._connection.is_closing:
            raise SessionExpired(path)

    def _handle_reply(self, frame: bytes) -> None:
        call = self._unanswered.popleft()
        header, reply = decode_reply(call.op, frame)
        is_absent = header.error == ErrorCode.NONODE and call.op == OpCode.EXISTS
        if call.watch is not None and (is_absent or not header.error):
            self._watches.add(
                WatchTarget.ABSENCE if is_absent else call.target, call.path, call.watch
            )
        self._replies.append((header.error, reply))


def _get(path: str, watch: Watch | None) -> _Call:
    return _Call(OpCode.GET_DATA, path, WatchedRequest(path, watch is not None), watch)


def _multi(ops: Sequence[Op]) -> _Call:
    parts = tuple((int(each.op), each.body) for each in map(_write, ops))
    return _Call(OpCode.MULTI, ops[0].path if ops else "/", MultiRequest(parts))


def _write(op: Op) -> _Call:
    """A change as a request; b"" is null on the wire, as with an ensemble."""
    match op:
        case Create():
            body = CreateRequest(op.path, op.data or None, _OPEN, _FLAGS[op.mode])
            return _Call(OpCode.CREATE, op.path, body)
        case SetData():
            return _Call(
                OpCode.SET_DATA, op.path, SetDataRequest(op.path, op.data or None, op.version)
            )
        case Delete():
            return _Call(OpCode.DELETE, op.path, VersionRequest(op.path, op.version))
        case Check():
            return _Call(OpCode.CHECK, op.path, VersionRequest(op.path, op.version))


def _response(request: Request, code: int, reply: Any) -> Response:
    if isinstance(request, Get):
        return _error(code, request.path) if code else _znode(reply)
    return _error(code, request.ops[0].path) if code else _results(request.ops, reply)


def _results(ops: Sequence[Op], reply: Any) -> list[OpResult] | ZooKeeperError:
    """The results of a transaction, or the error of the operation that made it fail."""
    results: list[OpResult] = []
    for op, (_, part) in zip(ops, reply.results, strict=True):
        if isinstance(part, NumberReply):
            if part.number not in (ErrorCode.OK, ErrorCode.RUNTIMEINCONSISTENCY):
                return _error(part.number, op.path)
        elif isinstance(op, Create):
            results.append(part.path)
        else:
            results.append(_stat(part.stat) if isinstance(op, SetData) else None)
    return results


def _error(code: int, path: str) -> ZooKeeperError:
    kind = _ERRORS.get(code)
    if kind is not None:
        return kind(path)
    return ZooKeeperError(path, f"ZooKeeper refused {path}: {ErrorCode(code).name}")


def _znode(reply: Any) -> Znode:
    return Znode(reply.data or b"", _stat(reply.stat))


def _stat(stat: Stat) -> ZnodeStat:
    return ZnodeStat(*stat[:5], stat.ephemeral_owner)
