"""A tree of znodes: versions, transaction ids, sequence numbers, all-or-nothing transactions.

Pure state: sessions and watches are `memory`'s, durability is `journal`'s. A transaction is applied
by the same code when it happens and when it is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    WatchKind,
    ZnodeStat,
)


class TreeNode(NamedTuple):
    """A node's data, stat, and how many children were ever created below it."""

    data: bytes
    stat: ZnodeStat
    children_created: int = 0


class Transaction(NamedTuple):
    """Changes made as one step: the journal's unit."""

    zxid: int
    time_ms: int
    session_id: int
    ops: Sequence[Op]


class Applied(NamedTuple):
    """The results of a transaction, its events in order, and the nodes as they were before."""

    results: list[OpResult]
    events: list[WatchEvent]
    before: dict[str, TreeNode | None]


def _own(data: bytes) -> bytes:
    """A copy in as much memory as it needs: behind what orjson makes lie 4 KiB of room."""
    return bytes(memoryview(data))


def parent_of(path: str) -> str:
    """The path above `path`; that of a top node is "/"."""
    return path.rpartition("/")[0] or "/"


class ZnodeTree:
    """The nodes by path. `zxid` is that of the last transaction applied."""

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, TreeNode] = {}
        self._children: dict[str, set[str]] = {}
        self._put("/", TreeNode(b"", ZnodeStat(0, 0, 0, 0, 0)))

    def child_names(self, path: str) -> list[str]:
        """Sorted names of a node's children. Raises NoNode."""
        if path not in self.nodes:
            raise NoNode(path)
        return sorted(self._children.get(path, ()))

    def ephemerals(self, session_id: int | None = None) -> list[str]:
        """Sorted paths of the ephemerals of one session, or of all."""
        return sorted(
            path
            for path, node in self.nodes.items()
            if (owner := node.stat.ephemeral_owner) and session_id in (None, owner)
        )

    def restore(self, path: str, node: TreeNode) -> None:
        """Put a node of a snapshot back."""
        self._put(path, node)

    def apply(self, transaction: Transaction) -> Applied:
        """Apply all operations or, raising the first one's error, none."""
        applied = Applied([], [], {})
        for op in transaction.ops:
            try:
                applied.results.append(self._apply_op(op, transaction, applied))
            except (NoNode, NodeExists, BadVersion, NotEmpty):
                self.undo(applied)
                raise
        self.zxid = transaction.zxid
        return applied

    def undo(self, applied: Applied) -> None:
        """Take a transaction's changes back (a zxid once used is not used again)."""
        for path, node in reversed(applied.before.items()):
            self._put(path, node)

    def _apply_op(self, op: Op, transaction: Transaction, applied: Applied) -> OpResult:
        if isinstance(op, Create):
            return self._create(op, transaction, applied)
        node = self.nodes.get(op.path)
        if node is None:
            raise NoNode(op.path)
        if op.version not in (ANY_VERSION, node.stat.version):
            raise BadVersion(op.path)
        if isinstance(op, SetData):
            stat = node.stat._replace(
                mzxid=transaction.zxid,
                mtime_ms=transaction.time_ms,
                version=node.stat.version + 1,
            )
            self._change(op.path, node._replace(data=_own(op.data), stat=stat), applied)
            applied.events.append(WatchEvent(WatchKind.DATA_CHANGED, op.path))
            return stat
        if isinstance(op, Delete):
            if self._children.get(op.path):
                raise NotEmpty(op.path)
            self._change(op.path, None, applied)
            applied.events.append(WatchEvent(WatchKind.DELETED, op.path))
            applied.events.append(WatchEvent(WatchKind.CHILDREN_CHANGED, parent_of(op.path)))
            return None
        assert isinstance(op, Check), op
        return None

    def _create(self, op: Create, transaction: Transaction, applied: Applied) -> str:
        above = parent_of(op.path)
        parent = self.nodes.get(above)
        if parent is None or parent.stat.ephemeral_owner:
            raise NoNode(op.path)
        path = op.path
        if op.mode is CreateMode.PERSISTENT_SEQUENTIAL:
            path += f"{parent.children_created:010d}"
        if path in self.nodes:
            raise NodeExists(path)
        zxid, time_ms = transaction.zxid, transaction.time_ms
        owner = transaction.session_id if op.mode is CreateMode.EPHEMERAL else 0
        counted = parent._replace(children_created=parent.children_created + 1)
        self._change(above, counted, applied)
        stat = ZnodeStat(zxid, zxid, time_ms, time_ms, 0, owner)
        self._change(path, TreeNode(_own(op.data), stat), applied)
        applied.events.append(WatchEvent(WatchKind.CREATED, path))
        applied.events.append(WatchEvent(WatchKind.CHILDREN_CHANGED, above))
        return path

    def _change(self, path: str, node: TreeNode | None, applied: Applied) -> None:
        applied.before.setdefault(path, self.nodes.get(path))
        self._put(path, node)

    def _put(self, path: str, node: TreeNode | None) -> None:
        above, _, name = path.rpartition("/")
        siblings = self._children.setdefault(above or "/", set())
        if node is None:
            self.nodes.pop(path, None)
            self._children.pop(path, None)
            siblings.discard(name)
        else:
            self.nodes[path] = node
            if path != "/":
                siblings.add(name)
