"""Stats as ZooKeeper counts; other reads are held by test_conversations.py."""

from __future__ import annotations

from kafkapy.zk.embedded.znode_tree import TreeNode, ZnodeTree
from kafkapy.zk.service.reads import stat_of
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.records import Stat
from kafkapy.zk.wire.requests import PathRequest, VersionRequest, WatchedRequest
from kafkapy.zk.zookeeper import ZnodeStat
from tests.harness.cores.socketless_zookeeper import ZooKeeperDesk


def test_changes_of_children_are_counted_and_the_last_is_told() -> None:
    client = ZooKeeperDesk().client()
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
