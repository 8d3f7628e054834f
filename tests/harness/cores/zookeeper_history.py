"""Checks of the frames that the clients of a ZooKeeper server receive.

An observer checks one client, frame by frame: replies come in the order of the requests, zxids
never go down, and no reply shows a change before the event of the client's watch for it. `replay`
checks the writes of all clients: on a service of ours, one after another in the order of their
zxids, they get the same replies.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from kafkapy.zk.service.zookeeper_service import ZooKeeperService
from kafkapy.zk.wire import replies, requests
from kafkapy.zk.wire.codes import ErrorCode, EventType, OpCode
from kafkapy.zk.wire.connecting import CONNECT_REPLY, CONNECT_REQUEST, ConnectReply, ConnectRequest
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Reader, encode
from kafkapy.zk.wire.records import Acl, Stat
from kafkapy.zk.wire.requests import (
    CreateRequest,
    MultiRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
)
from tests.harness.cores.znodes import BytesFile
from tests.harness.cores.zookeeper_conversation import EVENT_XID, new_service

OPEN = (Acl(31, "world", "anyone"),)
PATHS = ("/a", "/a", "/a/b", "/a/b", "/a/c", "/e", "/e/f")
WRITES = (OpCode.CREATE2, OpCode.DELETE, OpCode.SET_DATA, OpCode.MULTI)
READS = (OpCode.EXISTS, OpCode.GET_DATA, OpCode.GET_CHILDREN2)
TIMEOUT_MS = 60_000
EPHEMERAL, SEQUENCE = 1, 2
Body = Any


class Write(NamedTuple):
    """A write with its reply."""

    zxid: int
    client: int
    op: OpCode
    body: Body
    error: int
    reply: Any


def random_request(chance: random.Random, root: str) -> tuple[OpCode, Body]:
    """A random request for one of a few nodes below the root."""
    op = chance.choice((*WRITES, OpCode.CREATE2, *READS, *READS))
    path, version = root + chance.choice(PATHS), chance.choice((-1, -1, 0, 1))
    if op in READS:
        return op, WatchedRequest(path, chance.random() < 0.6)
    if op is OpCode.MULTI:
        parts = chance.choices(WRITES[:3], k=chance.randrange(1, 4))
        return op, MultiRequest(tuple((int(p), _write(p, path, version, chance)) for p in parts))
    return op, _write(op, path, version, chance)


def _write(op: OpCode, path: str, version: int, chance: random.Random) -> Body:
    if op is OpCode.CREATE2:
        flags = chance.choice((0, 0, 0, EPHEMERAL, SEQUENCE, EPHEMERAL | SEQUENCE))
        return CreateRequest(path, chance.randbytes(2), OPEN, flags)
    if op is OpCode.DELETE:
        return VersionRequest(path, version)
    return SetDataRequest(path, chance.randbytes(2), version)


class Observer:
    """One client: builds its frames and checks those of the server. Raises AssertionError."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.session = ConnectReply(0, 0, 0, None)
        self.zxid = 0
        self.writes: list[Write] = []
        self.events = 0
        self._xid = 0
        self._sent: deque[tuple[int, OpCode, Body]] = deque()
        self._is_connected = False
        self._data: dict[str, int | None] = {}
        """The mzxid of each node that a data watch is on; None for one that does not exist."""
        self._children: dict[str, int] = {}
        """The pzxid of each node that a child watch is on."""

    @property
    def waits(self) -> bool:
        """Whether a reply is missing."""
        return bool(self._sent) or not self._is_connected

    def connect_request_frame(self) -> bytes:
        """The first frame of a connection. It resumes the session, if there is one."""
        assert not self._sent, f"client {self.number} waits for replies"
        self._is_connected = False
        known = self.session
        return encode(
            CONNECT_REQUEST,
            ConnectRequest(0, self.zxid, TIMEOUT_MS, known.session_id, known.password, False),
        )

    def request(self, op: OpCode, body: Body) -> bytes:
        """The frame of a request."""
        self._xid += 1
        self._sent.append((self._xid, op, body))
        codec = {**requests.WRITES, **requests.BODIES}[op]
        return encode(requests.HEADER, requests.RequestHeader(self._xid, op)) + encode(codec, body)

    def set_watches_frame(self) -> bytes:
        """The first request of a resumed session: it sets the watches again."""
        data = tuple(path for path, mzxid in self._data.items() if mzxid is not None)
        absent = tuple(path for path, mzxid in self._data.items() if mzxid is None)
        body = SetWatchesRequest(self.zxid, data, absent, tuple(self._children))
        return self.request(OpCode.SET_WATCHES, body)

    def received(self, frame: bytes) -> None:
        """Check a frame of the server."""
        if not self._is_connected:
            reply = CONNECT_REPLY.read(Reader(frame))
            assert reply.session_id, f"the session of client {self.number} is lost"
            assert self.session.session_id in (0, reply.session_id)
            self.session, self._is_connected = reply, True
            return
        header = replies.HEADER.read(Reader(frame))
        if header.xid == EVENT_XID:
            self._event(replies.EVENT.read(Reader(frame, 16)))
            return
        xid, op, body = self._sent.popleft()
        assert header.xid == xid, f"client {self.number} hears of {header.xid} before {xid}"
        assert header.zxid >= self.zxid, f"client {self.number}: {header.zxid} after {self.zxid}"
        self.zxid = header.zxid
        _, reply = replies.decode_reply(op, frame)
        if op in WRITES:
            self.writes.append(Write(header.zxid, self.number, op, body, header.error, reply))
        self._check_watches(op, body, header.error, reply)

    def _event(self, event: replies.WatcherEvent) -> None:
        self.events += 1
        if event.kind == EventType.NODE_CHILDREN_CHANGED:
            self._children.pop(event.path, None)
        else:
            self._data.pop(event.path, None)
        if event.kind == EventType.NODE_DELETED:
            self._children.pop(event.path, None)

    def _check_watches(self, op: OpCode, body: Body, error: int, reply: Any) -> None:
        """Check a reply against the watches, and record the watch that it sets."""
        if op in (OpCode.MULTI, OpCode.SET_WATCHES):
            return
        path = reply.path if op is OpCode.CREATE2 and not error else body.path
        stat: Stat | None = getattr(reply, "stat", None)
        is_missing = error == ErrorCode.NONODE or (op is OpCode.DELETE and not error)
        # A missing parent has the same error code.
        if stat is not None or (is_missing and op is not OpCode.CREATE2):
            self._compare(path, stat)
        if isinstance(body, WatchedRequest) and body.watch:
            if op is OpCode.EXISTS and is_missing:
                self._data[path] = None
            elif stat is not None and op is OpCode.GET_CHILDREN2:
                self._children[path] = stat.pzxid
            elif stat is not None:
                self._data[path] = stat.mzxid

    def _compare(self, path: str, stat: Stat | None) -> None:
        error_text = f"client {self.number} sees {path} before its event"
        if path in self._data:
            seen = self._data[path]
            assert (stat is None) == (seen is None), error_text
            assert stat is None or seen is None or stat.mzxid <= seen, error_text
        if path in self._children:
            assert stat is not None, error_text
            assert stat.pzxid <= self._children[path], error_text


class Serial:
    """A service of ours that handles one frame after another."""

    def __init__(self, sessions: int) -> None:
        self.service: ZooKeeperService = new_service(BytesFile())
        self.observers = [Observer(number) for number in range(sessions)]
        self._connections = []
        self._cutters = []
        for observer in self.observers:
            connection = self.service.add_connection("127.0.0.1", observer.number + 1)
            assert connection is not None
            self._connections.append(connection)
            self._cutters.append(FrameDecoder(1 << 30))
            self._send(observer.number, observer.connect_request_frame())

    def write(self, number: int, op: OpCode, body: Body) -> Write:
        """Do a write of a client, and return it."""
        observer = self.observers[number]
        self._send(number, observer.request(op, body))
        return observer.writes[-1]

    def _send(self, number: int, frame: bytes) -> None:
        self.service.handle_data(self._connections[number], encode_frame(frame))
        for ready in self.service.commit():
            own = self._connections.index(ready)
            self._cutters[own].feed(ready.take())
            for each in iter(self._cutters[own].next_frame, None):
                self.observers[own].received(each)


def replay(observers: list[Observer], before: Iterable[tuple[OpCode, Body]]) -> int:
    """Repeat all writes in the order of their zxids. Returns their number.

    `before` are earlier writes of the first client alone, which are repeated first. Raises
    AssertionError for a reply that this order does not give.
    """
    serial = Serial(len(observers))
    for op, body in before:
        serial.write(0, op, body)
    writes = sorted(write for each in observers for write in each.writes)
    base = writes[0].zxid - serial.service.tree.zxid - 1
    theirs = {each.session.session_id: each.number for each in observers}
    ours = {each.session.session_id: each.number for each in serial.observers}
    for number, write in enumerate(writes):
        assert write.zxid == writes[0].zxid + number, f"nobody knows of the write before {write}"
        repeated = serial.write(write.client, write.op, write.body)
        found = (repeated.error, plain(repeated.reply, 0, ours))
        assert found == (write.error, plain(write.reply, base, theirs)), (write, repeated)
    return len(writes)


def plain(value: Any, base: int, sessions: dict[int, int]) -> Any:
    """A reply without times, its zxids counted from a base, and sessions by their clients."""
    if isinstance(value, Stat):
        owner = sessions.get(value.ephemeral_owner, value.ephemeral_owner)
        zxids = [zxid - base for zxid in (value.czxid, value.mzxid, value.pzxid)]
        value = value._replace(ctime=0, mtime=0, czxid=0, mzxid=0, pzxid=0, ephemeral_owner=0)
        return [*zxids, owner, *value]
    if isinstance(value, tuple):
        return [plain(each, base, sessions) for each in value]
    return value
