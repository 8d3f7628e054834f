"""Reads of the tree: stats, data, children, ACLs."""

from __future__ import annotations

from typing import Final

from kafkapy.zk.embedded.znode_tree import TreeNode, ZnodeTree
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.permissions import acl_without_digests, check, is_allowed, user_of
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.service.watches import Watches
from kafkapy.zk.wire.codes import ErrorCode, OpCode, Permission
from kafkapy.zk.wire.records import Acl, ClientInfo, Stat
from kafkapy.zk.wire.replies import (
    AclReply,
    ChildrenReply,
    DataReply,
    MultiReply,
    NamesReply,
    NumberReply,
    PathReply,
    Reply,
    StatReply,
    WhoAmIReply,
)
from kafkapy.zk.wire.requests import MultiRequest, PathRequest, Request, WatchedRequest

MULTI_READ_MAX_BYTES: Final = 16 << 20
"""The limit of bytes in the reply to a MultiRead. A small request may read the same large node tens
of thousands of times."""

_INT_BITS = 1 << 32


def node_at(tree: ZnodeTree, path: str) -> TreeNode:
    """The node at a path.

    Raises:
        Refused: NONODE.
    """
    node = tree.nodes.get(path)
    if node is None:
        raise Refused(ErrorCode.NONODE)
    return node


def stat_of(tree: ZnodeTree, path: str, node: TreeNode) -> Stat:
    """A node's stat as clients see it."""
    stat, children = node.stat, tree.child_count(path)
    # The tree counts creations of children. ZooKeeper's cversion, a Java int, counts creations and
    # deletions.
    changes = (2 * node.children_created - children + _INT_BITS // 2) % _INT_BITS - _INT_BITS // 2
    return Stat(
        stat.czxid,
        stat.mzxid,
        stat.ctime_ms,
        stat.mtime_ms,
        stat.version,
        changes,
        node.acl_version,
        stat.ephemeral_owner,
        len(node.data or b""),
        children,
        node.children_zxid or stat.czxid,
    )


class Reads:
    """Answers requests that change nothing except the client's watches."""

    def __init__(self, tree: ZnodeTree, watches: Watches[Connection]) -> None:
        self._tree = tree
        self._watches = watches

    def answer(self, op: int, body: Request, client: Connection) -> Reply:
        """The reply to a read.

        Raises:
            Refused: the request failed, with this code.
        """
        match op, body:
            case OpCode.EXISTS, WatchedRequest():
                return self._exists(body, client)
            case OpCode.GET_DATA, WatchedRequest():
                return self._data(body, client)
            case OpCode.GET_CHILDREN, WatchedRequest():
                return NamesReply(self._children(body, client))
            case OpCode.GET_CHILDREN2, WatchedRequest():
                names = self._children(body, client)
                return ChildrenReply(names, self._stat(body.path))
            case OpCode.GET_ACL, PathRequest():
                return self._acl(body.path, client)
            case OpCode.SYNC, PathRequest():
                return PathReply(body.path)
            case OpCode.GET_EPHEMERALS, PathRequest():
                return self._ephemerals(body.path, client)
            case OpCode.GET_ALL_CHILDREN_NUMBER, PathRequest():
                return self._descendants(body.path, client)
            case OpCode.MULTI_READ, MultiRequest():
                return self._parts(body, client)
            case OpCode.WHO_AM_I, _:
                infos = [ClientInfo(each[0], user_of(each)) for each in client.identities]
                return WhoAmIReply(tuple(infos))
        raise Refused(ErrorCode.UNIMPLEMENTED)

    def _exists(self, body: WatchedRequest, client: Connection) -> Reply:
        if "\0" in body.path:
            raise Refused(ErrorCode.BADARGUMENTS)
        node = self._tree.nodes.get(body.path)
        if node is not None:
            check(node.acl, Permission.READ, client.identities)
        if body.watch:
            self._watches.data.add(body.path, client)
        return StatReply(self._stat(body.path))

    def _data(self, body: WatchedRequest, client: Connection) -> Reply:
        node = self._readable_node(body.path, client)
        if body.watch:
            self._watches.data.add(body.path, client)
        return DataReply(node.data, stat_of(self._tree, body.path, node))

    def _children(self, body: WatchedRequest, client: Connection) -> tuple[str, ...]:
        self._readable_node(body.path, client)
        if body.watch:
            self._watches.children.add(body.path, client)
        return tuple(self._tree.child_names(body.path))

    def _acl(self, path: str, client: Connection) -> Reply:
        node = node_at(self._tree, path)
        check(node.acl, Permission.READ | Permission.ADMIN, client.identities)
        entries = tuple(Acl(*each) for each in node.acl)
        if not is_allowed(node.acl, Permission.ADMIN, client.identities):
            entries = acl_without_digests(node.acl)
        return AclReply(entries, stat_of(self._tree, path, node))

    def _ephemerals(self, prefix: str, client: Connection) -> Reply:
        assert client.session is not None
        paths = self._tree.ephemerals(client.session.session_id)
        return NamesReply(tuple(each for each in paths if each.startswith(prefix.strip())))

    def _descendants(self, path: str, client: Connection) -> Reply:
        self._readable_node(path, client)
        if path == "/":
            return NumberReply(len(self._tree.nodes) - 1)
        prefix = f"{path}/"
        return NumberReply(sum(each.startswith(prefix) for each in self._tree.nodes))

    def _parts(self, body: MultiRequest, client: Connection) -> Reply:
        results: list[tuple[int, Reply]] = []
        size = 0
        for op, part in body.ops:
            results.append(self._part(op, part, client))
            size += _size_of(results[-1][1])
            if size > MULTI_READ_MAX_BYTES and len(body.ops) > 1:
                raise Refused(ErrorCode.MARSHALLINGERROR)
        return MultiReply(tuple(results))

    def _part(self, op: int, body: Request, client: Connection) -> tuple[int, Reply]:
        try:
            return op, self.answer(op, body, client)
        except Refused as refused:
            return OpCode.ERROR, NumberReply(refused.code)

    def _stat(self, path: str) -> Stat:
        return stat_of(self._tree, path, node_at(self._tree, path))

    def _readable_node(self, path: str, client: Connection) -> TreeNode:
        node = node_at(self._tree, path)
        check(node.acl, Permission.READ, client.identities)
        return node


def _size_of(part: Reply) -> int:
    """The approximate size in bytes of the node data or child names in a reply."""
    match part:
        case DataReply():
            return len(part.data or b"")
        case NamesReply():
            return sum(map(len, part.names))
    return 0
