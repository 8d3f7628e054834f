"""ZooKeeper in memory: the embedded store of a lone broker.

`MemoryServer` holds the tree, the sessions and the watches; `MemoryZooKeeper` is one client.
Watches are called after their transaction is durable, in the order of its operations and, for one
operation, of their registration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy.common.ports import Clock
from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.embedded.znode_tree import (
    AppliedTransaction,
    CloseSession,
    Transaction,
    TreeOp,
    ZnodeTree,
)
from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    BadVersion,
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

_REFUSALS = (NoNode, NodeExists, BadVersion, NotEmpty)

# path -> watch -> the session that set it
_Watches = dict[str, dict[Watch, int]]


class MemoryServer:
    """The tree with its sessions. Without a journal it is in memory only."""

    def __init__(self, clock: Clock, journal: Journal | None = None) -> None:
        """Recover from `journal`, without ephemerals, because their sessions have ended. Sessions
        of network clients, from an earlier ZooKeeper server on this journal, are closed.

        Raises:
            JournalCorrupt: the journal's file is damaged other than at its end.
        """
        self._clock = clock
        self._journal = journal
        self.tree = ZnodeTree() if journal is None else journal.recover(clock.time_ms())
        self._sessions: dict[int, MemoryZooKeeper] = {}
        self._next_session_id = 1
        self._data_watches: _Watches = {}
        self._child_watches: _Watches = {}
        self._close_network_sessions()

    def _close_network_sessions(self) -> None:
        if not self.tree.sessions or self._journal is None:
            return
        ends: list[TreeOp] = [
            Delete(path) for owner in self.tree.sessions for path in self.tree.ephemerals(owner)
        ]
        ends += [CloseSession(session_id) for session_id in self.tree.sessions]
        closing = Transaction(self.tree.zxid + 1, self._clock.time_ms(), 0, ends)
        self.tree.apply(closing)
        self._journal.append([closing], self.tree)

    def connect(self) -> MemoryZooKeeper:
        """A client with a new session."""
        return MemoryZooKeeper(self)

    def open_session(self, client: MemoryZooKeeper) -> int:
        """Begin a session for `client`."""
        session_id = self._next_session_id
        self._next_session_id += 1
        self._sessions[session_id] = client
        return session_id

    def is_live(self, session_id: int) -> bool:
        """Whether the session is open."""
        return session_id in self._sessions

    def end_session(self, session_id: int) -> None:
        """Close or expire a session, and remove its watches and ephemerals."""
        if self._sessions.pop(session_id, None) is None:
            return
        for watches in (self._data_watches, self._child_watches):
            for path in list(watches):
                for watch in [w for w, owner in watches[path].items() if owner == session_id]:
                    del watches[path][watch]
        paths = self.tree.ephemerals(session_id)
        if paths:
            self.transact(session_id, [[Delete(path) for path in paths]])

    def expire(self, session_id: int) -> None:
        """End a session as after its timeout, and notify its client."""
        client = self._sessions.get(session_id)
        self.end_session(session_id)
        if client is not None and client.on_session_expired is not None:
            client.on_session_expired()

    def transact(
        self, session_id: int, batches: Sequence[Sequence[Op]]
    ) -> list[list[OpResult] | ZooKeeperError]:
        """Apply each batch as a transaction. The successful ones are written to the journal
        together.

        Raises:
            StoreUnavailable: the journal failed; none of the batches was applied.
        """
        now_ms = self._clock.time_ms()
        answers: list[list[OpResult] | ZooKeeperError] = []
        changes: list[tuple[Transaction, AppliedTransaction]] = []
        for ops in batches:
            transaction = Transaction(self.tree.zxid + 1, now_ms, session_id, ops)
            try:
                applied = self.tree.apply(transaction)
            except _REFUSALS as error:
                answers.append(error)
                continue
            answers.append(applied.results)
            if any(isinstance(op, Create | SetData | Delete) for op in ops):
                changes.append((transaction, applied))
        self._write(changes)
        for _, applied in changes:
            for event in applied.events:
                self._fire(event)
        return answers

    def watch_data(self, path: str, watch: Watch, session_id: int) -> None:
        """Call `watch` once, when the node is created, changed or deleted."""
        self._data_watches.setdefault(path, {}).setdefault(watch, session_id)

    def watch_children(self, path: str, watch: Watch, session_id: int) -> None:
        """Call `watch` once, when a child is created or deleted, or the node is deleted."""
        self._child_watches.setdefault(path, {}).setdefault(watch, session_id)

    def _write(self, changes: list[tuple[Transaction, AppliedTransaction]]) -> None:
        if self._journal is None or not changes:
            return
        try:
            self._journal.append([transaction for transaction, _ in changes], self.tree)
        except OSError as error:
            for _, applied in reversed(changes):
                self.tree.undo(applied)
            raise StoreUnavailable("/", f"the embedded store cannot be written: {error}") from error

    def _fire(self, event: WatchEvent) -> None:
        if event.kind is WatchEventType.CHILDREN_CHANGED:
            found = dict(self._child_watches.pop(event.path, {}))
        else:
            found = dict(self._data_watches.pop(event.path, {}))
            if event.kind is WatchEventType.DELETED:
                found |= self._child_watches.pop(event.path, {})
        for watch in found:
            watch(event)


class MemoryZooKeeper:
    """One session with a `MemoryServer`."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self.on_session_expired: Callable[[], None] | None = None
        self._session_id = server.open_session(self)

    @property
    def session_id(self) -> int:
        """The id of the current session."""
        return self._session_id

    def reconnect(self) -> None:
        """Begin a new session after expiry."""
        self._server.end_session(self._session_id)
        self._session_id = self._server.open_session(self)

    async def close(self) -> None:
        """End the session, and delete its ephemerals."""
        self._server.end_session(self._session_id)

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """A node's data and stat."""
        self._check_session(path)
        return self._get(path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """A node's stat, if it exists."""
        self._check_session(path)
        if watch is not None:
            self._server.watch_data(path, watch, self._session_id)
        node = self._server.tree.nodes.get(path)
        return (
            None
            if node is None
            else node.stat._replace(children_zxid=node.children_zxid or node.stat.czxid)
        )

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The sorted names of a node's children."""
        self._check_session(path)
        names = self._server.tree.child_names(path)
        if watch is not None:
            self._server.watch_children(path, watch, self._session_id)
        return names

    async def create(self, path: str, data: bytes, mode: CreateMode = CreateMode.PERSISTENT) -> str:
        """Create a node. Returns its path."""
        created_path = (await self.multi([Create(path, data, mode)]))[0]
        assert isinstance(created_path, str), created_path
        return created_path

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> ZnodeStat:
        """Replace a node's data."""
        stat = (await self.multi([SetData(path, data, version)]))[0]
        assert isinstance(stat, ZnodeStat), stat
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self.multi([Delete(path, version)])

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Apply all operations or none."""
        self._check_session(ops[0].path)
        answer = self._server.transact(self._session_id, [ops])[0]
        if isinstance(answer, ZooKeeperError):
            raise answer
        return answer

    async def pipeline(self, requests: Sequence[Request]) -> list[Response]:
        """Apply every request in order. Adjacent transactions share one journal write."""
        self._check_session("/")
        answers: list[Response] = []
        batches: list[Sequence[Op]] = []
        for request in requests:
            if isinstance(request, Multi):
                batches.append(request.ops)
                continue
            answers.extend(self._server.transact(self._session_id, batches))
            batches = []
            answers.append(self._get_or_error(request))
        answers.extend(self._server.transact(self._session_id, batches))
        return answers

    def _get_or_error(self, request: Get) -> Response:
        try:
            return self._get(request.path, request.watch)
        except NoNode as error:
            return error

    def _get(self, path: str, watch: Watch | None) -> Znode:
        node = self._server.tree.nodes.get(path)
        if node is None:
            raise NoNode(path)
        if watch is not None:
            self._server.watch_data(path, watch, self._session_id)
        return Znode(node.data or b"", node.stat)

    def _check_session(self, path: str) -> None:
        if not self._server.is_live(self._session_id):
            raise SessionExpired(path)
