"""A simulated ZooKeeper ensemble: one tree, sessions that expire, and watches of connections.

The tree is production's (`zk.znode_tree`). A session's responses and watch events arrive in one
order. A request is performed when it arrives, whether or not its response arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.protocol import serialization as wire
from kazoo.protocol.serialization import int_struct, long_struct, read_string, write_string
from kazoo.protocol.states import ZnodeStat as KazooStat

from kafkapy.zk import zookeeper as port
from kafkapy.zk.embedded.znode_tree import Transaction, TreeNode, ZnodeTree
from tests.simulation.events import WALL_EPOCH_MS, Event
from tests.simulation.network import Pipe

if TYPE_CHECKING:
    from tests.simulation.events import Events
    from tests.simulation.network import Network
    from tests.simulation.trace import Trace

HOST: Final = "zookeeper"
SET_WATCHES: Final = 101

_MODES: Final = {
    0: port.CreateMode.PERSISTENT,
    1: port.CreateMode.EPHEMERAL,
    2: port.CreateMode.PERSISTENT_SEQUENTIAL,
}
_KINDS: Final = {
    port.WatchEventType.CREATED: 1,
    port.WatchEventType.DELETED: 2,
    port.WatchEventType.DATA_CHANGED: 3,
    port.WatchEventType.CHILDREN_CHANGED: 4,
}
_ERRORS: Final[dict[type[Exception], type[Exception]]] = {
    port.NoNode: kazoo_errors.NoNodeError,
    port.NodeExists: kazoo_errors.NodeExistsError,
    port.BadVersion: kazoo_errors.BadVersionError,
    port.NotEmpty: kazoo_errors.NotEmptyError,
}
_REFUSALS: Final = tuple(_ERRORS)

AnswerCallback = Callable[[Any, Exception | None, int], None]


class Session:
    """A client's session in the ensemble."""

    def __init__(self, session_id: int, timeout_us: int) -> None:
        self.session_id = session_id
        self.timeout_us = timeout_us
        self.link: Link | None = None
        self.timer: Event | None = None


class Link:
    """A client's connection. `on_event` and `on_end` are the client's, called over `to_client`."""

    def __init__(
        self,
        to_client: Pipe,
        on_event: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self.to_client = to_client
        self.session: Session | None = None
        self._on_event = on_event
        self._on_end = on_end

    def fire(self, kind: port.WatchEventType, path: str) -> None:
        """Send a watch event."""
        event = int_struct.pack(_KINDS[kind]) + int_struct.pack(3) + write_string(path)
        self.to_client.send(lambda: self._on_event(event))

    def end(self) -> None:
        """Close the connection from the server's side."""
        self.to_client.send(self._on_end)


class Ensemble:
    """All servers of the ensemble. `on_change(ops, session_id)` is called after every transaction
    that changed the tree."""

    def __init__(self, events: Events, network: Network, trace: Trace) -> None:
        self.tree = ZnodeTree()
        self.sessions: dict[int, Session] = {}
        self.on_change: Callable[[Sequence[port.Op], int], None] = lambda ops, session_id: None
        self.is_down = False
        self._events = events
        self._network = network
        self._trace = trace
        self._next_session_id = 0x100
        self._data_watches: dict[str, dict[Link, None]] = {}
        self._child_watches: dict[str, dict[Link, None]] = {}
        self._children_zxid: dict[str, int] = {}
        self._lost_response_name = ""

    def lose_answer(self, name: str) -> None:
        """Apply the next write of a znode of this name, but drop the connection before the
        response."""
        self._lost_response_name = f"/{name}"

    def remove(self, path: str) -> None:
        """Delete a znode, as an administrator does."""
        self._transact([port.Delete(path)], 0)

    # sessions

    def open(self, link: Link, session_id: int, timeout_us: int) -> int:
        """Open a session (0), or continue one over a new connection; return 0 if it has expired."""
        if session_id == 0:
            session_id = self._next_session_id
            self._next_session_id += 1
            self.sessions[session_id] = Session(session_id, timeout_us)
        session = self.sessions.get(session_id)
        if session is None:
            return 0
        if session.link is not None:
            self._drop_watches(session.link)
            session.link.end()
        session.link, link.session = link, session
        self.restart_timeout(session)
        return session_id

    def restart_timeout(self, session: Session) -> None:
        """Restart the timeout of a session."""
        if session.timer is not None:
            session.timer.cancel()
        session.timer = self._events.after(
            session.timeout_us, lambda: self.expire(session.session_id)
        )

    def connection_closed(self, link: Link) -> None:
        """Record that a connection ended; its session stays open until its timeout."""
        self._drop_watches(link)
        if link.session is not None and link.session.link is link:
            link.session.link = None

    def expire(self, session_id: int, reason: str = "expired") -> None:
        """End a session; delete its ephemerals in one transaction. The client learns later."""
        session = self.sessions.pop(session_id, None)
        if session is None:
            return
        if session.timer is not None:
            session.timer.cancel()
        self._trace.note(HOST, f"session 0x{session_id:x} {reason}")
        if session.link is not None:
            self._drop_watches(session.link)
            session.link.end()
            session.link = None  # a request in flight arrives too late
        paths = self.tree.ephemerals(session_id)
        if paths:
            self._transact([port.Delete(path) for path in paths], session_id)

    def stop(self) -> None:
        """Stop the ensemble: connections end, no session can expire."""
        self.is_down = True
        for session in self.sessions.values():
            if session.timer is not None:
                session.timer.cancel()
            if session.link is not None:
                self._drop_watches(session.link)
                session.link.end()
                session.link = None

    def start(self) -> None:
        """Start the ensemble again: every session has its whole timeout to reconnect."""
        self.is_down = False
        for session in self.sessions.values():
            self.restart_timeout(session)

    def was_connected_at(self, ephemeral: str, changed: str) -> bool:
        """Whether the session that owns `ephemeral` has a connection, and owned it when `changed`
        was last written."""
        owned, written = self.tree.nodes.get(ephemeral), self.tree.nodes.get(changed)
        if owned is None or written is None or owned.stat.czxid > written.stat.mzxid:
            return False
        session = self.sessions.get(owned.stat.ephemeral_owner)
        return session is not None and session.link is not None

    # requests

    def request(self, link: Link, record: Any, answer: AnswerCallback) -> None:
        """Perform a request; `answer(value, error, zxid)` is called over the pipe back."""
        session = link.session
        if self.is_down or session is None or session.link is not link:
            return
        self.restart_timeout(session)
        value, error = self._perform(link, session, record)
        if self._lost_response_name and error is None and self._writes(record):
            self._lost_response_name = ""
            self._trace.note(HOST, f"the answer to session 0x{session.session_id:x} is lost")
            self._drop_watches(link)
            session.link = None
            link.end()
            return
        zxid = self.tree.zxid
        link.to_client.send(lambda: answer(value, error, zxid))

    def _writes(self, record: Any) -> bool:
        """Whether this is the write whose response is to be lost."""
        if record.type == wire.Transaction.type:
            return any(self._writes(each) for each in record.operations)
        is_write = record.type in (wire.Create.type, wire.SetData.type)
        return is_write and record.path.endswith(self._lost_response_name)

    def _perform(self, link: Link, session: Session, record: Any) -> tuple[Any, Exception | None]:
        kind = record.type
        if kind == SET_WATCHES:
            self._set_watches(link, record)
            return True, None
        try:
            if kind in (wire.GetData.type, wire.Exists.type, wire.GetChildren.type):
                return self._read(link, kind, bytes(record.serialize())), None
            if kind == wire.Transaction.type:
                return self._multi(record, session.session_id), None
            return self._transact([_op(record)], session.session_id)[0], None
        except _REFUSALS as refusal:
            return None, _ERRORS[type(refusal)]()

    def _read(self, link: Link, kind: int, request: bytes) -> Any:
        path, end = read_string(request, 0)
        is_watched = bool(request[end])
        node = self.tree.nodes.get(path)
        if kind == wire.GetChildren.type:
            names = self.tree.child_names(path)
            if is_watched:
                self._child_watches.setdefault(path, {})[link] = None
            return names
        if node is None and kind == wire.GetData.type:
            raise port.NoNode(path)
        if is_watched:
            self._data_watches.setdefault(path, {})[link] = None
        if node is None:
            return None
        stat = self._stat(path, node)
        return stat if kind == wire.Exists.type else (node.data or None, stat)

    def _multi(self, record: Any, session_id: int) -> list[Any]:
        ops = [_op(each) for each in record.operations]
        try:
            return self._transact(ops, session_id)
        except _REFUSALS as refusal:
            at = next(i for i, op in enumerate(ops) if _is_cause(op, refusal))
            return [
                kazoo_errors.RolledBackError()
                if i < at
                else _ERRORS[type(refusal)]()
                if i == at
                else kazoo_errors.RuntimeInconsistency()
                for i in range(len(ops))
            ]

    def _transact(self, ops: Sequence[port.Op], session_id: int) -> list[Any]:
        tree = self.tree
        time_ms = WALL_EPOCH_MS + self._events.now_us // 1000
        applied = tree.apply(Transaction(tree.zxid + 1, time_ms, session_id, ops))
        for kind, path in applied.events:
            if kind is port.WatchEventType.CHILDREN_CHANGED:
                self._children_zxid[path] = tree.zxid
            self._fire(kind, path)
        self.on_change(ops, session_id)
        return [
            self._stat(op.path, tree.nodes[op.path])
            if isinstance(op, port.SetData)
            else result
            if isinstance(op, port.Create)
            else True
            for op, result in zip(ops, applied.results, strict=True)
        ]

    def _stat(self, path: str, node: TreeNode) -> KazooStat:
        stat = node.stat
        return KazooStat(
            stat.czxid, stat.mzxid, stat.ctime_ms, stat.mtime_ms, stat.version, 0, 0,
            stat.ephemeral_owner, len(node.data), 0, self._children_zxid.get(path, stat.czxid),
        )  # fmt: skip

    # watches

    def _fire(self, kind: port.WatchEventType, path: str) -> None:
        if kind is port.WatchEventType.CHILDREN_CHANGED:
            found = self._child_watches.pop(path, {})
        else:
            found = self._data_watches.pop(path, {})
            if kind is port.WatchEventType.DELETED:
                found = found | self._child_watches.pop(path, {})
        for link in found:
            link.fire(kind, path)

    def _drop_watches(self, link: Link) -> None:
        for watches in (*self._data_watches.values(), *self._child_watches.values()):
            watches.pop(link, None)

    def _set_watches(self, link: Link, record: Any) -> None:
        """Handle SetWatches: changes since the client's last zxid fire at once."""
        seen, data, absence, children = _parse_set_watches(bytes(record.serialize()))
        for path in data:
            node = self.tree.nodes.get(path)
            if node is None:
                link.fire(port.WatchEventType.DELETED, path)
            elif node.stat.mzxid > seen:
                link.fire(port.WatchEventType.DATA_CHANGED, path)
            else:
                self._data_watches.setdefault(path, {})[link] = None
        for path in absence:
            if path in self.tree.nodes:
                link.fire(port.WatchEventType.CREATED, path)
            else:
                self._data_watches.setdefault(path, {})[link] = None
        for path in children:
            if path not in self.tree.nodes:
                link.fire(port.WatchEventType.DELETED, path)
            elif self._children_zxid.get(path, 0) > seen:
                link.fire(port.WatchEventType.CHILDREN_CHANGED, path)
            else:
                self._child_watches.setdefault(path, {})[link] = None


def _op(record: Any) -> port.Op:
    if record.type == wire.Create.type:
        return port.Create(record.path, record.data or b"", _MODES[record.flags])
    if record.type == wire.SetData.type:
        return port.SetData(record.path, record.data or b"", record.version)
    if record.type == wire.Delete.type:
        return port.Delete(record.path, record.version)
    assert record.type == wire.CheckVersion.type, record
    return port.Check(record.path, record.version)


def _is_cause(op: port.Op, refusal: Exception) -> bool:
    """Whether a multi failed because of `op`: the refusal names its path."""
    assert isinstance(refusal, port.ZooKeeperError)
    is_sequential = isinstance(op, port.Create) and op.mode is port.CreateMode.PERSISTENT_SEQUENTIAL
    return refusal.path.startswith(op.path) if is_sequential else refusal.path == op.path


def _parse_set_watches(request: bytes) -> tuple[int, list[str], list[str], list[str]]:
    [seen] = long_struct.unpack_from(request)
    at = long_struct.size
    lists: list[list[str]] = []
    for _ in range(3):
        [count] = int_struct.unpack_from(request, at)
        at += int_struct.size
        paths = []
        for _ in range(count):
            path, at = read_string(request, at)
            paths.append(path)
        lists.append(paths)
    return seen, *lists
