"""Sessions, watches and durability of the memory server."""

from __future__ import annotations

import pytest

from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.zookeeper import (
    BadVersion,
    Check,
    Create,
    CreateMode,
    Get,
    Multi,
    NodeExists,
    NoNode,
    SessionExpired,
    SetData,
    StoreUnavailable,
    WatchEvent,
    WatchEventType,
    Znode,
    ZnodeStat,
    ZooKeeper,
)
from tests.harness.cores.socketless_zookeeper import SocketlessServer
from tests.harness.cores.znodes import BytesFile, run, server


def client() -> MemoryZooKeeper:
    return server().connect()


def test_it_is_a_zookeeper() -> None:
    zk: ZooKeeper = client()
    assert run(zk.create("/a", b"1")) == "/a"
    assert run(zk.get("/a")).data == b"1"
    assert run(zk.set("/a", b"2", 0)).version == 1
    assert run(zk.children("/")) == ["a"]
    stat = run(zk.exists("/a"))
    assert stat is not None
    assert stat.version == 1
    run(zk.delete("/a", 1))
    assert run(zk.exists("/a")) is None
    with pytest.raises(NoNode):
        run(zk.get("/a"))


def test_watches_fire_once_and_only_for_what_they_watch() -> None:
    zk = client()
    run(zk.create("/a", b""))
    seen: list[WatchEvent] = []
    run(zk.exists("/later", seen.append))
    run(zk.get("/a", seen.append))
    run(zk.children("/a", seen.append))
    run(zk.create("/a/b", b""))
    run(zk.create("/a/c", b""))
    run(zk.set("/a", b"1"))
    run(zk.set("/a", b"2"))
    run(zk.create("/later", b""))
    assert seen == [
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/a"),
        WatchEvent(WatchEventType.DATA_CHANGED, "/a"),
        WatchEvent(WatchEventType.CREATED, "/later"),
    ]


def test_one_watch_set_twice_fires_once_and_deletion_reaches_child_watches() -> None:
    zk = client()
    run(zk.create("/a", b""))
    seen: list[WatchEvent] = []
    watch = seen.append
    run(zk.children("/a", watch))
    run(zk.get("/a", watch))
    run(zk.get("/a", watch))
    run(zk.delete("/a"))
    assert seen == [WatchEvent(WatchEventType.DELETED, "/a")]


def test_reading_a_missing_node_leaves_no_watch() -> None:
    zk = client()
    seen: list[WatchEvent] = []
    for read in (zk.get, zk.children):
        with pytest.raises(NoNode):
            run(read("/a", seen.append))
    run(zk.create("/a", b""))
    assert seen == []


def test_a_multi_is_all_or_nothing_and_names_the_failed_node() -> None:
    zk = client()
    run(zk.create("/fence", b""))
    results = run(zk.multi([Check("/fence", 0), Create("/a", b""), SetData("/a", b"1", 0)]))
    assert results[:2] == [None, "/a"]
    assert isinstance(results[2], ZnodeStat)
    with pytest.raises(BadVersion) as refused:
        run(zk.multi([Create("/b", b""), Check("/fence", 1)]))
    assert refused.value.path == "/fence"
    assert run(zk.exists("/b")) is None


def test_a_pipeline_answers_each_request_in_order() -> None:
    zk = client()
    answers = run(
        zk.pipeline(
            [
                Get("/a"),
                Multi([Create("/a", b"1")]),
                Multi([Create("/a", b"2")]),
                Get("/a"),
            ]
        )
    )
    assert isinstance(answers[0], NoNode)
    assert answers[1] == ["/a"]
    assert isinstance(answers[2], NodeExists)
    assert isinstance(answers[3], Znode)
    assert answers[3].data == b"1"


def test_expiry_takes_ephemerals_and_watches_and_tells_others() -> None:
    ensemble = server()
    one, other = ensemble.connect(), ensemble.connect()
    run(one.create("/e", b"", CreateMode.EPHEMERAL))
    mine: list[WatchEvent] = []
    theirs: list[WatchEvent] = []
    expired: list[bool] = []
    one.on_session_expired = lambda: expired.append(True)
    run(one.exists("/e", mine.append))
    run(other.exists("/e", theirs.append))
    ensemble.expire(one.session_id)
    assert expired == [True]
    assert mine == []
    assert theirs == [WatchEvent(WatchEventType.DELETED, "/e")]
    with pytest.raises(SessionExpired):
        run(one.get("/e"))
    with pytest.raises(SessionExpired):
        run(one.multi([Create("/x", b"")]))

    before = one.session_id
    one.reconnect()
    assert one.session_id != before
    assert run(one.children("/")) == []


def test_closing_drops_ephemerals() -> None:
    ensemble = server()
    one = ensemble.connect()
    run(one.create("/e", b"", CreateMode.EPHEMERAL))
    run(one.close())
    assert run(ensemble.connect().exists("/e")) is None


def test_a_write_that_is_not_durable_did_not_happen() -> None:
    file = BytesFile()
    ensemble = server(file)
    zk = ensemble.connect()
    run(zk.create("/a", b"1"))
    seen: list[WatchEvent] = []
    run(zk.get("/a", seen.append))
    file.fail = True
    with pytest.raises(StoreUnavailable):
        run(zk.pipeline([Multi([SetData("/a", b"2")]), Multi([Create("/b", b"")])]))
    assert seen == []
    assert run(zk.get("/a")).data == b"1"
    assert run(zk.exists("/b")) is None
    file.fail = False
    run(zk.set("/a", b"3"))
    assert seen == [WatchEvent(WatchEventType.DATA_CHANGED, "/a")]
    assert run(server(file).connect().get("/a")).data == b"3"


def test_neighbouring_transactions_of_a_pipeline_share_one_write() -> None:
    file = BytesFile()
    zk = server(file).connect()
    writes: list[int] = []
    append = file.append

    def counted(data: bytes) -> None:
        writes.append(len(data))
        append(data)

    file.append = counted  # type: ignore[method-assign]
    run(zk.pipeline([Multi([Create(f"/{i}", b"")]) for i in range(50)]))
    run(zk.pipeline([Multi([Check("/", 0)])]))
    assert len(writes) == 1


def test_sessions_of_the_network_end_where_it_is_served_no_more() -> None:
    desk = SocketlessServer()
    remote = desk.client()
    remote.create("/brokers", b"kept")
    remote.create("/theirs", b"", 1)
    for _ in range(2):
        tree = server(desk.file).tree
        assert "/theirs" not in tree.nodes
        assert tree.sessions == {}
        assert tree.nodes["/brokers"].data == b"kept"
