"""The tree against ZooKeeper's rules, and all-or-nothing transactions."""

from __future__ import annotations

import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.zk.embedded.znode_tree import (
    OPEN_TO_ALL,
    CloseSession,
    CreateZnode,
    OpenSession,
    Transaction,
    TreeNode,
    TreeOp,
    ZnodeTree,
    next_version,
    parent_of,
)
from kafkapy.zk.zookeeper import (
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    SetData,
    WatchEvent,
    WatchEventType,
    ZnodeStat,
    ZooKeeperError,
)

EPHEMERAL, SEQUENTIAL = CreateMode.EPHEMERAL, CreateMode.PERSISTENT_SEQUENTIAL


def apply(tree: ZnodeTree, *ops: TreeOp, session_id: int = 5):  # type: ignore[no-untyped-def]
    return tree.apply(Transaction(tree.zxid + 1, 100 + tree.zxid, session_id, ops))


def test_a_node_holds_no_more_memory_than_its_data() -> None:
    """10,000 partitions held 40 MB of the room that orjson leaves behind each short result."""
    tree = ZnodeTree()
    apply(tree, Create("/set", b""))
    count = 200
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            apply(tree, Create(f"/{number}", orjson.dumps({"leader": number})))
            apply(tree, SetData(f"/{number}", orjson.dumps({"leader": number, "isr": [1, 2]})))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 2000


def test_stats_tell_who_created_and_who_changed() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/a", b"1"))
    apply(tree, SetData("/a", b"2"))
    assert tree.nodes["/a"] == TreeNode(b"2", ZnodeStat(1, 2, 100, 101, 1))


def test_a_node_created_and_set_in_one_transaction_has_that_czxid_and_version_one() -> None:
    """Brokers register like this: the broker epoch is this czxid."""
    tree = ZnodeTree()
    applied = apply(tree, Create("/id", b"", EPHEMERAL), SetData("/id", b"x", 0))
    stat = applied.results[1]
    assert stat == ZnodeStat(1, 1, 100, 100, 1, 5)
    assert tree.ephemerals(5) == ["/id"]
    assert tree.ephemerals(6) == []


def test_sequence_numbers_count_creations_not_children() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/q", b""))
    first = apply(tree, Create("/q/n_", b"", SEQUENTIAL)).results
    apply(tree, Delete("/q/n_0000000000"))
    second = apply(tree, Create("/q/n_", b"", SEQUENTIAL)).results
    assert [first, second] == [["/q/n_0000000000"], ["/q/n_0000000001"]]


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (Create("/a", b""), NodeExists),
        (Create("/x/y", b""), NoNode),
        (Create("/e/child", b""), NoNode),
        (SetData("/x", b""), NoNode),
        (SetData("/a", b"", 7), BadVersion),
        (Delete("/x"), NoNode),
        (Delete("/a"), NotEmpty),
        (Delete("/a/b", 3), BadVersion),
        (Check("/a", 7), BadVersion),
        (Check("/x", 0), NoNode),
    ],
)
def test_refusals_name_the_node_and_leave_no_trace(op: Op, error: type[ZooKeeperError]) -> None:
    tree = ZnodeTree()
    apply(tree, Create("/a", b""), Create("/a/b", b""), Create("/e", b"", EPHEMERAL))
    before = (dict(tree.nodes), tree.zxid, tree.child_names("/"))
    with pytest.raises(error) as refused:
        apply(tree, SetData("/a", b"new"), Delete("/e"), Create("/n", b""), op)
    assert refused.value.path == op.path
    assert (dict(tree.nodes), tree.zxid, tree.child_names("/")) == before


def test_events_come_in_the_order_of_the_operations() -> None:
    tree = ZnodeTree()
    applied = apply(tree, Create("/a", b""), SetData("/a", b"1"), Delete("/a"))
    assert applied.events == [
        WatchEvent(WatchEventType.CREATED, "/a"),
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/"),
        WatchEvent(WatchEventType.DATA_CHANGED, "/a"),
        WatchEvent(WatchEventType.DELETED, "/a"),
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/"),
    ]


def test_parents() -> None:
    assert [parent_of(p) for p in ("/a", "/a/b", "/a/b/c")] == ["/", "/a", "/a/b"]


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/b/n_"])
OPS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=2), st.sampled_from(CreateMode)),
    st.builds(SetData, PATHS, st.binary(max_size=2), st.integers(-1, 1)),
    st.builds(Delete, PATHS, st.integers(-1, 1)),
    st.builds(Check, PATHS, st.integers(0, 1)),
)


@given(st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=12))
def test_undoing_restores_and_children_always_match(batches: list[list[Op]]) -> None:
    tree = ZnodeTree()
    for ops in batches:
        before = dict(tree.nodes)
        try:
            applied = apply(tree, *ops)
        except ZooKeeperError:
            assert tree.nodes == before
            continue
        after = dict(tree.nodes)
        tree.undo(applied)
        assert tree.nodes == before
        tree.zxid -= 1
        apply(tree, *ops)
        assert tree.nodes == after
        for path in tree.nodes:
            below = [p for p in tree.nodes if p != "/" and parent_of(p) == path]
            assert tree.child_names(path) == sorted(p.rpartition("/")[2] for p in below)


def test_ephemerals_are_found_by_their_session() -> None:
    tree = ZnodeTree()
    apply(tree, OpenSession(5, b"p", 1), CreateZnode("/a", None, OPEN_TO_ALL, ephemeral=True))
    apply(tree, Create("/b", b"", EPHEMERAL), session_id=6)
    applied = apply(tree, Delete("/a"))
    tree.undo(applied)
    assert (tree.ephemerals(5), tree.ephemerals(6)) == (["/a"], ["/b"])
    assert tree.orphans() == ["/b"], "6 has not outlived its process"
    assert tree.ephemeral_count() == 2
    apply(tree, Delete("/a"), CloseSession(5))
    assert (tree.ephemerals(5), tree.sessions, tree.last_session_id) == ([], {}, 5)


def test_a_version_is_a_java_int() -> None:
    assert [next_version(each) for each in (-1, 0, (1 << 31) - 1)] == [0, 1, 0]
