"""A tree of znodes: versions, transaction ids, sequence numbers, all-or-nothing transactions.

Pure state: `memory` and `service` handle watches, `journal` durability. New and replayed
transactions are applied by the same code. The store of a single broker uses the operations of the
port; a ZooKeeper server adds ACLs, null data and sessions that outlive its process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpResult,
    SetData,
    WatchEvent,
    WatchEventType,
    ZnodeStat,
)

AccessList = tuple[tuple[int, str, str], ...]
"""Permissions, scheme and identity of each entry."""

OPEN_TO_ALL: Final[AccessList] = ((31, "world", "anyone"),)
_VERSION_MAX: Final = (1 << 31) - 1


class TreeNode(NamedTuple):
    """A node's data, stat, ACL and ACL version. `children_created` is the number of children ever
    created, `children_zxid` the last transaction that created or deleted one (0: none).
    """

    data: bytes | None
    stat: ZnodeStat
    children_created: int = 0
    children_zxid: int = 0
    acl: AccessList = OPEN_TO_ALL
    acl_version: int = 0


class CreateZnode(NamedTuple):
    """Create a node with an ACL; the result is its path. The path of a sequential node includes its
    number already.
    """

    path: str
    data: bytes | None
    acl: AccessList
    ephemeral: bool = False


class WriteZnode(NamedTuple):
    """Replace a node's data, which may be null; the result is its new stat."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class SetAcl(NamedTuple):
    """Replace a node's ACL."""

    path: str
    acl: AccessList


class OpenSession(NamedTuple):
    """Begin a session that outlives the process."""

    session_id: int
    password: bytes
    timeout_ms: int


class CloseSession(NamedTuple):
    """End a session. Earlier operations of the transaction delete its ephemerals."""

    session_id: int


TreeOp = Op | CreateZnode | WriteZnode | SetAcl | OpenSession | CloseSession


class Transaction(NamedTuple):
    """Operations that are applied together. A refused transaction has none, but uses up its
    zxid.
    """

    zxid: int
    time_ms: int
    session_id: int
    ops: Sequence[TreeOp]


class AppliedTransaction(NamedTuple):
    """The results of a transaction, its events in order, and the previous state of its nodes."""

    results: list[OpResult]
    events: list[WatchEvent]
    previous_nodes: dict[str, TreeNode | None]


def _trimmed_copy(data: bytes | None) -> bytes | None:
    """A copy without spare memory: orjson's results have 4 KiB of it."""
    return None if data is None else bytes(memoryview(data))


def next_version(version: int) -> int:
    """The version after a change: a Java int that skips -1, which means any version."""
    return version + 1 if version < _VERSION_MAX else 0


def parent_of(path: str) -> str:
    """The path above `path`; that of a top node is "/"."""
    return path.rpartition("/")[0] or "/"


class ZnodeTree:
    """The nodes by path, the sessions that outlive the process, and the highest session id so far.
    `zxid` is that of the last applied transaction.
    """

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, TreeNode] = {}
        self.sessions: dict[int, OpenSession] = {}
        self.last_session_id = 0
        self._children: dict[str, set[str]] = {}
        self._ephemerals: dict[int, set[str]] = {}
        self._put("/", TreeNode(b"", ZnodeStat(0, 0, 0, 0, 0)))

    def child_names(self, path: str) -> list[str]:
        """Sorted names of a node's children. Raises NoNode."""
        if path not in self.nodes:
            raise NoNode(path)
        return sorted(self._children.get(path, ()))

    def child_count(self, path: str) -> int:
        """The number of a node's children."""
        return len(self._children.get(path, ()))

    def ephemerals(self, session_id: int) -> list[str]:
        """Sorted paths of the ephemerals of a session."""
        return sorted(self._ephemerals.get(session_id, ()))

    def ephemeral_count(self) -> int:
        """The number of ephemerals."""
        return sum(map(len, self._ephemerals.values()))

    def orphans(self) -> list[str]:
        """Sorted paths of the ephemerals of sessions that did not outlive their process."""
        ended = self._ephemerals.keys() - self.sessions.keys()
        return sorted(path for owner in ended for path in self._ephemerals[owner])

    def restore(self, path: str, node: TreeNode) -> None:
        """Restore a node from a snapshot."""
        self._put(path, node)

    def apply(self, transaction: Transaction) -> AppliedTransaction:
        """Apply all operations, or raise the first error and apply none."""
        applied = AppliedTransaction([], [], {})
        for op in transaction.ops:
            try:
                applied.results.append(self.apply_op(op, transaction, applied))
            except (NoNode, NodeExists, BadVersion, NotEmpty):
                self.undo(applied)
                raise
        self.zxid = transaction.zxid
        return applied

    def undo(self, applied: AppliedTransaction) -> None:
        """Undo a transaction's changes of nodes. Its zxid is not used again."""
        for path, node in reversed(applied.previous_nodes.items()):
            self._put(path, node)

    def apply_op(
        self, op: TreeOp, transaction: Transaction, applied: AppliedTransaction
    ) -> OpResult:
        """Apply one operation of a transaction. `applied` gets the previous state."""
        if isinstance(op, Create | CreateZnode):
            return self._create(op, transaction, applied)
        if isinstance(op, OpenSession):
            self.sessions[op.session_id] = op
            self.last_session_id = max(self.last_session_id, op.session_id)
            return None
        if isinstance(op, CloseSession):
            self.sessions.pop(op.session_id, None)
            return None
        node = self.nodes.get(op.path)
        if node is None:
            raise NoNode(op.path)
        if isinstance(op, SetAcl):
            changed = node._replace(acl=op.acl, acl_version=next_version(node.acl_version))
            self._change(op.path, changed, applied)
            return None
        if op.version not in (ANY_VERSION, node.stat.version):
            raise BadVersion(op.path)
        if isinstance(op, SetData | WriteZnode):
            stat = node.stat._replace(
                mzxid=transaction.zxid,
                mtime_ms=transaction.time_ms,
                version=next_version(node.stat.version),
            )
            self._change(op.path, node._replace(data=_trimmed_copy(op.data), stat=stat), applied)
            applied.events.append(WatchEvent(WatchEventType.DATA_CHANGED, op.path))
            return stat
        if isinstance(op, Delete):
            self._delete(op.path, transaction.zxid, applied)
            return None
        assert isinstance(op, Check), op
        return None

    def _create(
        self, op: Create | CreateZnode, transaction: Transaction, applied: AppliedTransaction
    ) -> str:
        parent_path = parent_of(op.path)
        parent = self.nodes.get(parent_path)
        if parent is None or parent.stat.ephemeral_owner:
            raise NoNode(op.path)
        path, acl = op.path, OPEN_TO_ALL
        if isinstance(op, CreateZnode):
            ephemeral, acl = op.ephemeral, op.acl
        else:
            ephemeral = op.mode is CreateMode.EPHEMERAL
            if op.mode is CreateMode.PERSISTENT_SEQUENTIAL:
                path += f"{parent.children_created:010d}"
        if path in self.nodes:
            raise NodeExists(path)
        zxid, time_ms = transaction.zxid, transaction.time_ms
        new_parent = parent._replace(
            children_created=next_version(parent.children_created), children_zxid=zxid
        )
        self._change(parent_path, new_parent, applied)
        owner = transaction.session_id if ephemeral else 0
        stat = ZnodeStat(zxid, zxid, time_ms, time_ms, 0, owner)
        self._change(path, TreeNode(_trimmed_copy(op.data), stat, acl=acl), applied)
        applied.events.append(WatchEvent(WatchEventType.CREATED, path))
        applied.events.append(WatchEvent(WatchEventType.CHILDREN_CHANGED, parent_path))
        return path

    def _delete(self, path: str, zxid: int, applied: AppliedTransaction) -> None:
        if self._children.get(path):
            raise NotEmpty(path)
        parent_path = parent_of(path)
        self._change(parent_path, self.nodes[parent_path]._replace(children_zxid=zxid), applied)
        self._change(path, None, applied)
        applied.events.append(WatchEvent(WatchEventType.DELETED, path))
        applied.events.append(WatchEvent(WatchEventType.CHILDREN_CHANGED, parent_path))

    def _change(self, path: str, node: TreeNode | None, applied: AppliedTransaction) -> None:
        applied.previous_nodes.setdefault(path, self.nodes.get(path))
        self._put(path, node)

    def _put(self, path: str, node: TreeNode | None) -> None:
        self._update_ephemerals(path, node)
        parent_path, _, name = path.rpartition("/")
        siblings = self._children.setdefault(parent_path or "/", set())
        if node is None:
            self.nodes.pop(path, None)
            self._children.pop(path, None)
            siblings.discard(name)
        else:
            self.nodes[path] = node
            if path != "/":
                siblings.add(name)

    def _update_ephemerals(self, path: str, node: TreeNode | None) -> None:
        old_node = self.nodes.get(path)
        old_owner = 0 if old_node is None else old_node.stat.ephemeral_owner
        owner = 0 if node is None else node.stat.ephemeral_owner
        if old_owner == owner:
            return
        if old_owner:
            owned = self._ephemerals[old_owner]
            owned.discard(path)
            if not owned:
                del self._ephemerals[old_owner]
        if owner:
            self._ephemerals.setdefault(owner, set()).add(path)
