"""Writes to the tree: ZooKeeper's checks in ZooKeeper's order, then the change.

A replay does not repeat the checks: the journal contains complete names, and no versions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kafkapy.zk.embedded.znode_tree import (
    AccessList,
    AppliedTransaction,
    CreateZnode,
    SetAcl,
    Transaction,
    TreeNode,
    TreeOp,
    WriteZnode,
    ZnodeTree,
    parent_of,
)
from kafkapy.zk.service.node_paths import SYSTEM, check_path, parent_to_change
from kafkapy.zk.service.permissions import BASE_SCHEMES, Identity, check, stored_acl
from kafkapy.zk.service.reads import node_at, stat_of
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.wire.codes import CreateFlag, ErrorCode, EventType, OpCode, Permission
from kafkapy.zk.wire.replies import (
    CreatedReply,
    EmptyReply,
    MultiReply,
    NumberReply,
    PathReply,
    Reply,
    StatReply,
)
from kafkapy.zk.wire.requests import (
    CreateRequest,
    CreateTtlRequest,
    MultiRequest,
    Request,
    SetAclRequest,
    SetDataRequest,
    VersionRequest,
)
from kafkapy.zk.zookeeper import Delete

_CREATE_MODES = {
    CreateFlag.PERSISTENT: (False, False),
    CreateFlag.EPHEMERAL: (True, False),
    CreateFlag.PERSISTENT_SEQUENTIAL: (False, True),
    CreateFlag.EPHEMERAL_SEQUENTIAL: (True, True),
}
"""Whether the node is ephemeral, and whether it is sequential."""


class Change(NamedTuple):
    """An event, and the ACL of its node: only clients that may read the node are notified."""

    kind: EventType
    path: str
    acl: AccessList


class WriteTransaction:
    """One transaction in progress: its operations so far, with the state to undo them."""

    def __init__(
        self,
        tree: ZnodeTree,
        time_ms: int,
        session_id: int,
        identities: Collection[Identity] = (),
        schemes: Collection[str] = BASE_SCHEMES,
    ) -> None:
        """`schemes` are the schemes that ACLs may name."""
        self._tree = tree
        self._identities = identities
        self._schemes = schemes
        self._ops: list[TreeOp] = []
        self._applied = AppliedTransaction([], [], {})
        self.changes: list[Change] = []
        self.journal_entry = Transaction(tree.zxid + 1, time_ms, session_id, self._ops)

    def write(self, op: int, body: Request) -> Reply:
        """Apply one operation, alone or as part of a multi.

        Raises:
            Refused: it changed nothing. Earlier operations stay applied.
        """
        match body:
            case CreateRequest():
                return self._create(op, body)
            case CreateTtlRequest():
                raise Refused(ErrorCode.UNIMPLEMENTED)
            case SetDataRequest():
                return self._set_data(body)
            case SetAclRequest():
                return self._set_acl(body)
            case VersionRequest() if op == OpCode.DELETE:
                return self._delete(body)
            case VersionRequest():
                return self._check(body)
        raise Refused(ErrorCode.UNIMPLEMENTED)

    def write_all(self, body: MultiRequest) -> MultiReply:
        """Apply all operations or none. After a failure, the reply has an error code for each: OK
        before the failed operation, RUNTIMEINCONSISTENCY after it.
        """
        results: list[tuple[int, Reply]] = []
        for op, part in body.ops:
            try:
                results.append((op, self.write(op, part)))
            except Refused as refused:
                self.undo()
                remaining = len(body.ops) - len(results) - 1
                codes = [ErrorCode.OK] * len(results) + [refused.code]
                codes += [ErrorCode.RUNTIMEINCONSISTENCY] * remaining
                return MultiReply(tuple((OpCode.ERROR, NumberReply(code)) for code in codes))
        return MultiReply(tuple(results))

    def undo(self) -> None:
        """Undo everything."""
        self._tree.undo(self._applied)
        self._ops.clear()
        self.changes.clear()

    def delete(self, path: str) -> None:
        """Delete a node without checks, for example an ephemeral of a session that ends."""
        node = self._tree.nodes[path]
        self._apply(Delete(path))
        self._record_child_change(EventType.NODE_DELETED, path, node)

    def apply_session(self, op: TreeOp) -> None:
        """Open or close a session."""
        self._apply(op)

    def _create(self, op: int, body: CreateRequest) -> Reply:
        try:
            flag = CreateFlag(body.flags)
        except ValueError:
            raise Refused(ErrorCode.BADARGUMENTS) from None
        # As ZooKeeper 3.4, which has neither containers nor nodes with a time to live.
        if op == OpCode.CREATE_CONTAINER or flag not in _CREATE_MODES:
            raise Refused(ErrorCode.UNIMPLEMENTED)
        ephemeral, sequential = _CREATE_MODES[flag]
        parent_path = parent_to_change(body.path)
        acl = stored_acl(body.acl, self._identities, self._schemes)
        parent = node_at(self._tree, parent_path)
        check(parent.acl, Permission.CREATE, self._identities)
        path = body.path + (f"{parent.children_created:010d}" if sequential else "")
        check_path(path)
        if path in self._tree.nodes:
            raise Refused(ErrorCode.NODEEXISTS)
        if parent.stat.ephemeral_owner:
            raise Refused(ErrorCode.NOCHILDRENFOREPHEMERALS)
        self._apply(CreateZnode(path, body.data, acl, ephemeral))
        node = self._tree.nodes[path]
        self._record_child_change(EventType.NODE_CREATED, path, node)
        if op == OpCode.CREATE:
            return PathReply(path)
        return CreatedReply(path, stat_of(self._tree, path, node))

    def _delete(self, body: VersionRequest) -> Reply:
        parent_path = parent_to_change(body.path)
        if body.path == "/" or body.path in SYSTEM:
            raise Refused(ErrorCode.BADARGUMENTS)
        check(node_at(self._tree, parent_path).acl, Permission.DELETE, self._identities)
        node = node_at(self._tree, body.path)
        _check_version(node.stat.version, body.version)
        if self._tree.child_count(body.path):
            raise Refused(ErrorCode.NOTEMPTY)
        self.delete(body.path)
        return EmptyReply()

    def _set_data(self, body: SetDataRequest) -> Reply:
        check_path(body.path)
        node = node_at(self._tree, body.path)
        check(node.acl, Permission.WRITE, self._identities)
        _check_version(node.stat.version, body.version)
        self._apply(WriteZnode(body.path, body.data))
        self.changes.append(Change(EventType.NODE_DATA_CHANGED, body.path, node.acl))
        return self._stat(body.path)

    def _set_acl(self, body: SetAclRequest) -> Reply:
        check_path(body.path)
        acl = stored_acl(body.acl, self._identities, self._schemes)
        node = node_at(self._tree, body.path)
        check(node.acl, Permission.ADMIN, self._identities)
        _check_version(node.acl_version, body.version)
        self._apply(SetAcl(body.path, acl))
        return self._stat(body.path)

    def _check(self, body: VersionRequest) -> Reply:
        check_path(body.path)
        node = node_at(self._tree, body.path)
        check(node.acl, Permission.READ, self._identities)
        _check_version(node.stat.version, body.version)
        return EmptyReply()

    def _record_child_change(self, kind: EventType, path: str, node: TreeNode) -> None:
        parent_path = parent_of(path)
        acl = self._tree.nodes[parent_path].acl
        self.changes.append(Change(kind, path, node.acl))
        self.changes.append(Change(EventType.NODE_CHILDREN_CHANGED, parent_path, acl))

    def _stat(self, path: str) -> Reply:
        return StatReply(stat_of(self._tree, path, self._tree.nodes[path]))

    def _apply(self, op: TreeOp) -> None:
        self._tree.apply_op(op, self.journal_entry, self._applied)
        self._ops.append(op)


def _check_version(version: int, expected: int) -> None:
    if expected not in (-1, version):
        raise Refused(ErrorCode.BADVERSION)
