"""Whole trees as they are read: what outlives sessions, with its ACLs and its counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat
from kazoo.security import make_acl, make_digest_acl

from kafkapy.tools.zookeeper.tree_reader import TreeError, children_created, read_tree
from kafkapy.tools.zookeeper.znode_file import ZnodeRow

Connect = Callable[[str], KazooClient]
OPEN = ((31, "world", "anyone"),)


def stat(cversion: int, children: int) -> ZnodeStat:
    return ZnodeStat(1, 1, 0, 0, 0, cversion, 0, 0, 0, children, 1)


@pytest.mark.parametrize(
    ("cversion", "children", "created"),
    [(0, 0, 0), (1, 1, 1), (4, 2, 3), (-1, 1, 0), (-2, 0, 2**31 - 1)],
)
def test_creations_are_told_with_deletions(cversion: int, children: int, created: int) -> None:
    """The root of a new ZooKeeper has -1, for its own child was not created by a request."""
    assert children_created(stat(cversion, children)) == created


def test_all_but_ephemerals(client_of: Connect) -> None:
    client = client_of("")
    client.create("/read", b"top")
    client.create("/read/null")
    client.set("/read/null", None)
    client.create("/read/null/below", b"\xff")
    client.create("/read/gone")
    client.delete("/read/gone")
    for _ in range(2):
        client.set("/read", b"top")
    client.create("/read/mine", b"", ephemeral=True)
    client.create("/read/zookeeper", b"not the system's")
    acl = [make_acl("world", "anyone", read=True), make_acl("ip", "127.0.0.1", all=True)]
    client.set_acls("/read/null/below", acl)
    entries = ((1, "world", "anyone"), (31, "ip", "127.0.0.1"))
    found = read_tree(client_of("/read"))
    assert found.ephemerals == ["/mine"]
    assert found.rows == [
        ZnodeRow("/", b"top", 2, 4, OPEN),
        ZnodeRow("/null", None, 1, 1, OPEN),
        ZnodeRow("/null/below", b"\xff", 0, 0, entries),
        ZnodeRow("/zookeeper", b"not the system's", 0, 0, OPEN),
    ]
    whole = [row.path for row in read_tree(client).rows]
    assert whole[:2] == ["/", "/read"]
    assert not any(path.startswith("/zookeeper") for path in whole)


def test_what_may_not_be_read_is_named(client_of: Connect) -> None:
    client = client_of("")
    client.create("/secret", b"", acl=[make_digest_acl("user", "word", all=True)])
    with pytest.raises(TreeError, match="The ACL of / does not let this client read the znode"):
        read_tree(client_of("/secret"))
    mixed = [make_digest_acl("user", "word", all=True), make_acl("world", "anyone", read=True)]
    client.create("/hidden", b"", acl=mixed)
    with pytest.raises(TreeError, match="read the ACL"):
        read_tree(client_of("/hidden"))
    owner = client_of("/hidden")
    owner.add_auth("digest", "user:word")
    assert len(read_tree(owner).rows[0].acl) == 2


def test_a_chroot_that_is_not_there(client_of: Connect) -> None:
    with pytest.raises(TreeError, match="There is no znode /nowhere"):
        read_tree(client_of("/nowhere"))
