"""Stats as ZooKeeper counts; other reads are held by test_conversations.py."""

from __future__ import annotations

from kafkapy.zk.embedded.znode_tree import TreeNode, ZnodeTree
from kafkapy.zk.service.reads import MULTI_READ_MAX_BYTES, stat_of
from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.records import Stat
from kafkapy.zk.wire.requests import (
    MultiRequest,
    PathRequest,
    Request,
    VersionRequest,
    WatchedRequest,
)
from kafkapy.zk.zookeeper import ZnodeStat
from tests.harness.cores.socketless_zookeeper import SocketlessServer


def test_changes_of_children_are_counted_and_the_last_is_told() -> None:
    client = SocketlessServer().client()
    client.create("/a", None)
    for name in "xyz":
        client.create(f"/a/{name}", b"12")
    client.call(OpCode.DELETE, VersionRequest("/a/y", -1))
    stat = client.exists("/a").stat
    assert (stat.cversion, stat.num_children, stat.version) == (4, 2, 0)
    assert (stat.czxid, stat.mzxid, stat.pzxid) == (2, 2, 6)
    assert client.exists("/a/x").stat.data_length == 2
    assert client.call(OpCode.GET_ALL_CHILDREN_NUMBER, PathRequest("/a")).number == 2
    names = client.call(OpCode.GET_CHILDREN2, WatchedRequest("/a", False))
    assert (names.names, names.stat) == (("x", "z"), stat)


def test_a_count_beyond_a_java_int_wraps() -> None:
    node = TreeNode(b"", ZnodeStat(1, 1, 0, 0, 0), children_created=1 << 30)
    tree = ZnodeTree()
    tree.restore("/a", node)
    stat = stat_of(tree, "/a", node)
    assert isinstance(stat, Stat)
    assert stat.cversion == -(1 << 31)


def test_a_small_request_gets_no_reply_without_bounds() -> None:
    """65,000 reads of a node of 1 MB fit in one request: their reply would end the process."""
    client = SocketlessServer().client()
    client.create("/a", None)
    client.create("/a/big", bytes(MULTI_READ_MAX_BYTES // 20))
    for number in range(100):
        client.create(f"/a/{number:03d}{'x' * 1000}", None)
    big: tuple[int, Request] = (OpCode.GET_DATA, WatchedRequest("/a/big", False))
    names: tuple[int, Request] = (OpCode.GET_CHILDREN, WatchedRequest("/a", False))
    for part, fitting in (big, 20), (names, MULTI_READ_MAX_BYTES // 100_400):
        reply = client.call(OpCode.MULTI_READ, MultiRequest((part,) * (fitting - 1)))
        assert len(reply.results) == fitting - 1
        error = client.call(OpCode.MULTI_READ, MultiRequest((part,) * (fitting + 1)))
        assert error == ErrorCode.MARSHALLINGERROR
    assert client.exists("/a").stat.num_children == 101
