"""A conversation with every request of the protocol, and recorded conversations.

A recording is a list of frames: [connection, "client" or "server", hex or "end"]. `replay` sends
the client's frames to a service of ours, and returns its answers in the same form.
"""

from __future__ import annotations

import itertools
import json
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.service.settings import ServiceSettings
from kafkapy.zk.service.zookeeper_service import ZooKeeperService
from kafkapy.zk.wire import replies, requests
from kafkapy.zk.wire.codes import OpCode, Permission
from kafkapy.zk.wire.connecting import CONNECT_REPLY, CONNECT_REQUEST, ConnectRequest
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Reader, encode
from kafkapy.zk.wire.records import Acl, Stat
from kafkapy.zk.wire.requests import (
    AuthRequest,
    CreateRequest,
    EmptyRequest,
    MultiRequest,
    PathRequest,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchKindRequest,
)
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.cores.znodes import BytesFile

FOLDER = Path(__file__).parents[2] / "data" / "zookeeper"
LIMIT_S = 30.0
EVENT_XID, PING_XID, AUTH_XID = -1, -2, -4

OPEN = (Acl(31, "world", "anyone"),)
READ = (Acl(1, "world", "anyone"),)
MINE = (Acl(31, "auth", ""),)
NOBODY = (Acl(31, "digest", "nobody:x"),)


def script() -> Iterator[tuple[int, OpCode, requests.Request]]:
    """(connection, operation, request): three sessions, each request sent after the last reply."""
    op = OpCode
    create = CreateRequest
    yield 0, op.CREATE2, create("/a", b"1", OPEN, 0)
    yield 0, op.CREATE, create("/null", None, OPEN, 0)
    yield 0, op.GET_DATA, WatchedRequest("/null", False)
    for path in ("", "a", "/a/", "//a", "/a/.", "/a/../b", "/\x01", "/\ufff0", "/a\0b", "/"):
        yield 0, op.CREATE, create(path, b"", OPEN, 0)
    for path in ("/b", "/a/x", "/a//x", "b", "/b/"):
        yield 0, op.SET_DATA, SetDataRequest(path, b"", -1)
        yield 0, op.DELETE, VersionRequest(path, -1)
        yield 0, op.EXISTS, WatchedRequest(path, False)
        yield 0, op.GET_CHILDREN, WatchedRequest(path, False)
    for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
        yield 0, op.DELETE, VersionRequest(path, -1)
        yield 0, op.EXISTS, WatchedRequest(path, False)
        yield 0, op.GET_ACL, PathRequest(path)
        yield 0, op.GET_DATA, WatchedRequest(path, False)
        yield 0, op.GET_CHILDREN2, WatchedRequest(path, False)
        yield 0, op.GET_ALL_CHILDREN_NUMBER, PathRequest(path)
    yield 0, op.SET_DATA, SetDataRequest("/zookeeper/config", b"", -1)
    for flags in (-1, 7, 99):
        yield 0, op.CREATE, create("/flag", b"", OPEN, flags)
    yield from _acls()
    yield from _permissions()
    yield 2, op.CHECK, VersionRequest("/a", 0)
    yield from _watches()
    yield from _multis()
    yield from _sessions()


def _acls() -> Iterator[tuple[int, OpCode, requests.Request]]:
    op = OpCode
    create = CreateRequest
    acls: list[tuple[Acl, ...]] = [
        *((), MINE, (Acl(31, "world", "me"),), (Acl(31, "x509", "a"),), (Acl(1, "ip", "1.2.3"),)),
        *((Acl(1, "ip", "1.2.3.4/33"),), (Acl(31, "digest", "a"),), (Acl(31, "digest", "a:b:c"),)),
        (Acl(1, "ip", "127.0.0.1/8"), Acl(1, "ip", "127.0.0.1/8"), Acl(2, "ip", "127.0.0.1")),
        (*NOBODY, *READ),
    ]
    for number, acl in enumerate(acls):
        yield 0, op.CREATE, create(f"/acl{number}", b"", acl, 0)
        yield 0, op.GET_ACL, PathRequest(f"/acl{number}")
        yield 0, op.SET_ACL, SetAclRequest("/a", acl, 7)
    yield 0, op.GET_DATA, WatchedRequest("/acl8", False)
    yield 0, op.SET_DATA, SetDataRequest("/acl8", b"ip", -1)
    yield 0, op.SET_DATA, SetDataRequest("/acl9", b"no", -1)
    yield 0, op.SET_ACL, SetAclRequest("/acl9", OPEN, -1)
    yield 0, op.CREATE, create("/acl9/x", b"", OPEN, 0)


def _permissions() -> Iterator[tuple[int, OpCode, requests.Request]]:
    op = OpCode
    create = CreateRequest
    yield 0, op.WHO_AM_I, EmptyRequest()
    yield 0, op.AUTH, AuthRequest(0, "digest", b"user:secret")
    yield 0, op.CREATE, create("/mine", b"", MINE, 0)
    yield 0, op.GET_ACL, PathRequest("/mine")
    for path in ("/mine", "/mine/x"):
        yield 1, op.GET_ACL, PathRequest(path)
        yield 1, op.GET_DATA, WatchedRequest(path, True)
        yield 1, op.EXISTS, WatchedRequest(path, True)
        yield 1, op.GET_CHILDREN2, WatchedRequest(path, True)
        yield 1, op.CREATE, create(f"{path}/x", b"", OPEN, 0)
        yield 1, op.GET_ALL_CHILDREN_NUMBER, PathRequest(path)
    yield 0, op.SET_DATA, SetDataRequest("/mine", b"unseen", -1)
    only_admin = (Acl(16, "auth", ""), Acl(1, "world", "anyone"))
    yield 0, op.SET_ACL, SetAclRequest("/mine", only_admin, 0)
    yield 1, op.GET_ACL, PathRequest("/mine")
    yield 0, op.SET_DATA, SetDataRequest("/mine", b"", -1)
    yield 0, op.SET_ACL, SetAclRequest("/mine", OPEN, 0)
    yield 0, op.SET_ACL, SetAclRequest("/mine", OPEN, 1)
    yield 0, op.DELETE, VersionRequest("/mine", -1)


def _sessions() -> Iterator[tuple[int, OpCode, requests.Request]]:
    op = OpCode
    create = CreateRequest
    yield 0, op.CREATE, create("/a/e-", b"", OPEN, 3)
    yield 0, op.CREATE2, create("/own", b"", OPEN, 1)
    yield 0, op.CREATE, create("/own/x", b"", OPEN, 0)
    for prefix in ("", "/", "/a", "/x"):
        yield 0, op.GET_EPHEMERALS, PathRequest(prefix)
    yield 1, op.GET_EPHEMERALS, PathRequest("/")
    yield 0, op.SYNC, PathRequest("/a")
    yield 0, op.SYNC, PathRequest("/nowhere")
    yield 1, op.EXISTS, WatchedRequest("/own", True)
    yield 1, op.GET_CHILDREN, WatchedRequest("/", True)
    yield 0, op.CLOSE_SESSION, EmptyRequest()
    yield 1, op.GET_CHILDREN2, WatchedRequest("/", False)
    yield 1, op.AUTH, AuthRequest(0, "nonsense", b"x")


def _watches() -> Iterator[tuple[int, OpCode, requests.Request]]:
    op = OpCode
    create = CreateRequest
    yield 1, op.ADD_WATCH, WatchKindRequest("/w", 0)
    yield 1, op.ADD_WATCH, WatchKindRequest("/w", 1)
    yield 1, op.ADD_WATCH, WatchKindRequest("/", 1)
    yield 1, op.ADD_WATCH, WatchKindRequest("/w", 9)
    yield 1, op.EXISTS, WatchedRequest("/w", True)
    yield 0, op.CREATE, create("/w", b"", OPEN, 0)
    yield 1, op.GET_CHILDREN, WatchedRequest("/w", True)
    for path in ("/w/x", "/w/x/y"):
        yield 0, op.CREATE, create(path, b"", OPEN, 0)
        yield 0, op.SET_DATA, SetDataRequest(path, b"1", 0)
    yield 0, op.SET_DATA, SetDataRequest("/w", b"1", 0)
    for kind in (1, 2, 3, 4, 5, 9):
        yield 1, op.CHECK_WATCHES, WatchKindRequest("/w", kind)
        yield 1, op.CHECK_WATCHES, WatchKindRequest("/w/x", kind)
    for kind in (9, 1, 2):
        yield 1, op.REMOVE_WATCHES, WatchKindRequest("/w", kind)
    yield 1, op.REMOVE_WATCHES, WatchKindRequest("/", 3)
    yield 0, op.DELETE, VersionRequest("/w/x/y", -1)
    yield 1, op.REMOVE_WATCHES, WatchKindRequest("/w", 3)
    yield 1, op.REMOVE_WATCHES, WatchKindRequest("/w", 3)
    yield 0, op.DELETE, VersionRequest("/w/x", -1)
    yield 1, op.GET_DATA, WatchedRequest("/w", True)
    yield 1, op.GET_CHILDREN, WatchedRequest("/w", True)
    yield 0, op.DELETE, VersionRequest("/w", -1)
    yield 0, op.CREATE, create("/w", b"", OPEN, 0)
    yield 0, op.CREATE, create("/w/x", b"", OPEN, 0)
    paths = ("/w", "/a", "/nowhere")
    for since in (0, 1 << 40):
        for kind, watches in (
            (op.SET_WATCHES, SetWatchesRequest(since, paths, paths, paths)),
            (op.SET_WATCHES2, SetWatchesRequest(since, paths, (), (), ("/w",), ("/w/x",))),
        ):
            yield 1, kind, watches
    yield 0, op.SET_DATA, SetDataRequest("/w", b"2", -1)
    yield 0, op.CREATE, create("/nowhere", b"", OPEN, 0)
    yield 0, op.DELETE, VersionRequest("/w/x", -1)
    yield 0, op.DELETE, VersionRequest("/w", -1)
    yield 0, op.DELETE, VersionRequest("/nowhere", -1)


def _multis() -> Iterator[tuple[int, OpCode, requests.Request]]:
    op = OpCode
    create = CreateRequest
    parts: list[tuple[int, requests.Request]] = [
        (int(op.CREATE), create("/m", b"", OPEN, 0)),
        (int(op.CREATE2), create("/m/s", None, OPEN, 2)),
        (int(op.SET_DATA), SetDataRequest("/m", b"xyz", 0)),
        (int(op.CHECK), VersionRequest("/m", 1)),
        (int(op.DELETE), VersionRequest("/m/s0000000000", 0)),
    ]
    yield 0, op.MULTI, MultiRequest(())
    yield 0, op.MULTI, MultiRequest(tuple(parts))
    yield 0, op.MULTI, MultiRequest(tuple(parts))
    yield 0, op.EXISTS, WatchedRequest("/m", False)
    wrong: list[tuple[int, requests.Request]] = [
        (int(op.CHECK), VersionRequest("/no", 1)),
        (int(op.DELETE), VersionRequest("/", 1)),
        (int(op.CREATE), create("/acl9/x", b"", OPEN, 0)),
        (int(op.SET_DATA), SetDataRequest("/m", b"", 0)),
    ]
    fine = (int(op.CREATE), create("/f", b"", OPEN, 0))
    for each in wrong:
        yield 0, op.MULTI, MultiRequest((fine, each, fine))
    reads: list[tuple[int, requests.Request]] = [
        (int(op.GET_DATA), WatchedRequest("/m", False)),
        (int(op.GET_DATA), WatchedRequest("/no", False)),
        (int(op.GET_CHILDREN), WatchedRequest("/a", False)),
        (int(op.GET_CHILDREN), WatchedRequest("/no", False)),
    ]
    yield 0, op.MULTI_READ, MultiRequest(tuple(reads))
    yield 0, op.DELETE, VersionRequest("/m", -1)
    assert Permission.ALL == 31


def send_all(port: int) -> None:
    """Send the requests of `script` to a server, over three connections, and read the replies."""
    with ExitStack() as stack:
        ends, streams = [], []
        for _ in range(3):
            end = socket.create_connection(("127.0.0.1", port), LIMIT_S)
            ends.append(stack.enter_context(end))
            streams.append(stack.enter_context(end.makefile("rb")))
            connect_request = ConnectRequest(0, 0, 30000, 0, None, False)
            end.sendall(encode_frame(encode(CONNECT_REQUEST, connect_request)))
            _receive(streams[-1])
        for xid, (number, op, body) in enumerate(script(), 1):
            own = AUTH_XID if op == OpCode.AUTH else xid
            head = encode(requests.HEADER, requests.RequestHeader(own, op))
            codec = {**requests.WRITES, **requests.BODIES}[op]
            ends[number].sendall(encode_frame(head + encode(codec, body)))
            while (header := replies.HEADER.read(Reader(_receive(streams[number])))).xid != own:
                assert header.xid == EVENT_XID


def _receive(stream: Any) -> bytes:
    size = int.from_bytes(stream.read(4))
    data: bytes = stream.read(size)
    assert len(data) == size > 0, "the server has closed the connection"
    return data


Rows = list[tuple[int, str, str]]


def recording(name: str) -> Rows:
    """A conversation with Apache ZooKeeper (`dev/conformance/record_zookeeper.py`)."""
    return [tuple(row) for row in json.loads((FOLDER / f"{name}.json").read_text())]


def new_service(file: BytesFile) -> ZooKeeperService:
    """A service on a file."""
    return ZooKeeperService(Journal(file), ManualClock(), SeededRandom(1), ServiceSettings(), {})


def replay(rows: Rows, service: ZooKeeperService | None = None) -> Rows:
    """The same client's frames, with the answers of a service of ours (default: a new one)."""
    service = service or new_service(BytesFile())
    connections: dict[int, Any] = {}
    cutters: dict[int, FrameDecoder] = defaultdict(lambda: FrameDecoder(1 << 30))
    found: Rows = []
    for number, sender, frame in rows:
        if sender == "server":
            continue
        found.append((number, sender, frame))
        if number not in connections:
            connections[number] = service.add_connection("127.0.0.1", 1000 + number)
        if frame == "end":
            service.remove_connection(connections.pop(number))
        else:
            service.handle_data(connections[number], encode_frame(bytes.fromhex(frame)))
        while ready := service.commit():
            for each in ready:
                own = next(key for key, value in connections.items() if value is each)
                cutters[own].feed(each.take())
                for part in iter(cutters[own].next_frame, None):
                    found.append((own, "server", part.hex()))
                if each.is_stalled:
                    service.handle_buffered(each)
    return found


def server_frames(rows: Rows) -> dict[int, list[Any]]:
    """Server frames of each connection: (operation, header, body).

    Times, session ids, passwords and pings are left out. Names of children are sorted, and so are
    the events of one session's end, whose ephemerals ZooKeeper deletes in any order.
    """
    ops: dict[tuple[int, int], list[int]] = defaultdict(list)
    sessions: dict[int, str] = {}
    answers: dict[int, list[Any]] = defaultdict(list)
    has_begun: dict[tuple[int, str], bool] = {}
    for number, sender, frame in rows:
        if frame == "end":
            continue
        data = bytes.fromhex(frame)
        first = not has_begun.get((number, sender))
        has_begun[number, sender] = True
        if sender == "client":
            if not first:
                header, _ = requests.decode_header(data)
                ops[number, header.xid].append(header.op)
        elif first:
            reply = CONNECT_REPLY.read(Reader(data))
            sessions[reply.session_id] = f"session {number}"
            answers[number].append(("connected", reply.timeout_ms, reply.read_only))
        else:
            header = replies.HEADER.read(Reader(data))
            if header.xid == EVENT_XID:
                reader = Reader(data, 16)
                answers[number].append(("event", header, replies.EVENT.read(reader)))
            elif header.xid != PING_XID:
                op = ops[number, header.xid].pop(0)
                _, body = replies.decode_reply(op, data)
                answers[number].append((OpCode(op).name, header, _plain(body, sessions)))
    return {number: _ordered(rows) for number, rows in answers.items()}


def _ordered(rows: list[Any]) -> list[Any]:
    """Rows with sorted events of session ends, which are one transaction's, of several parents."""
    found: list[Any] = []
    for key, group in itertools.groupby(rows, lambda row: (row[0] == "event", row[1])):
        same = list(group)
        parents = {row[2].path.rpartition("/")[0] for row in same if row[2:]} if key[0] else set()
        found += sorted(same, key=lambda row: row[2].path) if len(parents) > 1 else same
    return found


def _plain(value: Any, sessions: dict[int, str]) -> Any:
    if isinstance(value, Stat):
        owner = sessions.get(value.ephemeral_owner, value.ephemeral_owner)
        times = [bool(value.ctime), bool(value.mtime)]
        return ["stat", *times, owner, value._replace(ctime=0, mtime=0, ephemeral_owner=0)]
    if isinstance(value, replies.NamesReply | replies.ChildrenReply):
        value = value._replace(names=tuple(sorted(value.names)))
    if isinstance(value, tuple) and not isinstance(value, Acl):
        return [type(value).__name__, *[_plain(each, sessions) for each in value]]
    return value
