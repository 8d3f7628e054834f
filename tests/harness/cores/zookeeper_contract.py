"""Contract of every ZooKeeper adapter, as cases to run against an `Ensemble`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from kafkapy.zk.zookeeper import (
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    Get,
    Multi,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    SetData,
    WatchEvent,
    WatchEventType,
    Znode,
    ZnodeStat,
    ZooKeeper,
)

LIMIT_S = 60.0


class Client(ZooKeeper, Protocol):
    """An adapter: the ZooKeeper operations, `close` and the callback for an expired session."""

    on_session_expired: Callable[[], None] | None

    async def close(self) -> None: ...


class Ensemble(Protocol):
    """A source of clients of one tree, which starts empty."""

    async def connect(self) -> Client: ...

    async def expire(self, client: Client) -> None: ...

    async def reconnect(self, client: Client) -> None: ...


class RecordingWatch:
    """A watch that records its events, and can wait for them."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self._changed = asyncio.Event()

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)
        self._changed.set()

    async def wait(self, count: int) -> list[WatchEvent]:
        """The events once there are `count` of them."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.events) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.events


async def verbs(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    assert zk.session_id != 0
    assert await zk.children("/") == []
    assert await zk.create("/a", b"1") == "/a"
    node = await zk.get("/a")
    assert node == Znode(b"1", node.stat)
    assert node.stat.version == 0
    assert node.stat.czxid == node.stat.mzxid > 0
    assert node.stat.ctime_ms == node.stat.mtime_ms > 0
    assert node.stat.ephemeral_owner == 0
    stat = await zk.set("/a", b"2", 0)
    assert (stat.version, stat.czxid) == (1, node.stat.czxid)
    assert stat.mzxid > stat.czxid
    found = await zk.exists("/a")
    assert found is not None
    assert found._replace(children_zxid=0) == stat
    await zk.set("/a", b"3")
    await zk.create("/b", b"")
    assert await zk.children("/") == ["a", "b"]
    await zk.delete("/a", 2)
    assert await zk.exists("/a") is None
    await zk.delete("/b")


async def the_last_change_of_children(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")

    async def last() -> int:
        stat = await zk.exists("/a")
        assert stat is not None
        return stat.children_zxid

    before = await last()
    assert before > 0
    await zk.create("/a/b", b"")
    created = await last()
    await zk.set("/a/b", b"1")
    assert await last() == created > before
    await zk.delete("/a/b")
    assert await last() > created


async def null_data(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    assert (await zk.get("/a")).data == b""
    await zk.set("/a", b"x")
    await zk.multi([SetData("/a", b""), Create("/b", b"")])
    assert [(await zk.get(path)).data for path in ("/a", "/b")] == [b"", b""]


async def refusals(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    await zk.create("/a/b", b"")
    await zk.create("/e", b"", CreateMode.EPHEMERAL)
    refused: list[tuple[type[Exception], str, Awaitable[object]]] = [
        (NoNode, "/no", zk.get("/no")),
        (NoNode, "/no", zk.children("/no")),
        (NoNode, "/no", zk.set("/no", b"")),
        (NoNode, "/no", zk.delete("/no")),
        (NoNode, "/no/x", zk.create("/no/x", b"")),
        (NoNode, "/e/x", zk.create("/e/x", b"")),
        (NoNode, "/no", zk.multi([Check("/no", 0)])),
        (NodeExists, "/a", zk.create("/a", b"")),
        (BadVersion, "/a", zk.set("/a", b"", 7)),
        (BadVersion, "/a/b", zk.delete("/a/b", 7)),
        (NotEmpty, "/a", zk.delete("/a")),
    ]
    for kind, path, attempt in refused:
        with pytest.raises(kind) as error:
            await attempt
        assert error.value.path == path  # type: ignore[attr-defined]


async def watches_fire_once(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    seen = RecordingWatch()
    assert await zk.exists("/later", seen) is None
    await zk.get("/a", seen)
    await zk.children("/a", seen)
    await zk.create("/a/b", b"")
    await zk.create("/a/c", b"")
    await zk.set("/a", b"1")
    await zk.set("/a", b"2")
    await zk.create("/later", b"")
    await zk.exists("/")
    assert seen.events == [
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/a"),
        WatchEvent(WatchEventType.DATA_CHANGED, "/a"),
        WatchEvent(WatchEventType.CREATED, "/later"),
    ]


async def watches_of_others(ensemble: Ensemble) -> None:
    """The event of another client's change arrives before anything that is read after it."""
    zk, other = await ensemble.connect(), await ensemble.connect()
    seen = RecordingWatch()
    await zk.children("/", seen)
    await zk.pipeline([Get("/", seen)])
    await other.create("/a", b"")
    await zk.exists("/")
    assert seen.events == [WatchEvent(WatchEventType.CHILDREN_CHANGED, "/")]


async def deletion_reaches_child_watches(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    seen, children = RecordingWatch(), RecordingWatch()
    await zk.children("/a", seen)
    await zk.children("/a", children)
    await zk.get("/a", seen)
    await zk.get("/a", seen)
    await zk.delete("/a")
    await zk.exists("/")
    assert seen.events == children.events == [WatchEvent(WatchEventType.DELETED, "/a")]


async def no_watch_on_a_missing_node(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    phantom, real = RecordingWatch(), RecordingWatch()
    for read in (zk.get, zk.children):
        with pytest.raises(NoNode):
            await read("/a", phantom)
    await zk.exists("/a", real)
    await zk.create("/a", b"")
    await zk.create("/a/b", b"")
    await zk.exists("/")
    assert real.events == [WatchEvent(WatchEventType.CREATED, "/a")]
    assert phantom.events == []


async def multi_is_all_or_nothing(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/fence", b"")
    ops = [Check("/fence", 0), Create("/a", b""), SetData("/a", b"1", 0), Create("/b", b"")]
    results = await zk.multi([*ops, Delete("/b", 0)])
    stat = results[2]
    assert isinstance(stat, ZnodeStat)
    assert results == [None, "/a", stat, "/b", None]
    # A multi has one zxid: a node that it creates and writes has equal czxid and mzxid.
    assert (stat.version, stat.czxid) == (1, stat.mzxid)
    with pytest.raises(BadVersion) as refused:
        await zk.multi([Create("/c", b""), Check("/fence", 1), Delete("/a")])
    assert refused.value.path == "/fence"
    with pytest.raises(NodeExists) as exists:
        await zk.multi([Check("/fence", 0), Create("/a", b"")])
    assert exists.value.path == "/a"
    assert await zk.children("/") == ["a", "fence"]


async def pipelines_answer_in_order(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    answers = await zk.pipeline(
        [
            Get("/a"),
            Multi([Create("/a", b"1")]),
            Multi([Create("/a", b"2")]),
            Get("/a"),
            Multi([Check("/a", 3)]),
        ]
    )
    assert [type(answer) for answer in answers] == [NoNode, list, NodeExists, Znode, BadVersion]
    assert answers[1] == ["/a"]
    assert isinstance(answers[3], Znode)
    assert answers[3].data == b"1"
    assert await zk.pipeline([]) == []


async def a_thousand_requests_happen_in_order(ensemble: Ensemble) -> None:
    """Each write is conditional on the one before it: any other order would fail."""
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    writes = [Multi([SetData("/a", str(number).encode(), number)]) for number in range(1000)]
    for number, answer in enumerate(await zk.pipeline(writes)):
        assert isinstance(answer, list)
        assert isinstance(answer[0], ZnodeStat)
        assert answer[0].version == number + 1
    assert (await zk.get("/a")).data == b"999"


async def sequential_nodes_count_up(ensemble: Ensemble) -> None:
    zk = await ensemble.connect()
    await zk.create("/a", b"")
    mode = CreateMode.PERSISTENT_SEQUENTIAL
    assert await zk.create("/a/n_", b"", mode) == "/a/n_0000000000"
    await zk.delete("/a/n_0000000000")
    assert await zk.multi([Create("/a/n_", b"", mode)]) == ["/a/n_0000000001"]


async def ephemerals_end_with_their_session(ensemble: Ensemble) -> None:
    one, other = await ensemble.connect(), await ensemble.connect()
    assert one.session_id != other.session_id
    await one.create("/e", b"", CreateMode.EPHEMERAL)
    stat = await other.exists("/e")
    assert stat is not None
    assert stat.ephemeral_owner == one.session_id
    seen = RecordingWatch()
    await other.exists("/e", seen)
    await one.close()
    assert await seen.wait(1) == [WatchEvent(WatchEventType.DELETED, "/e")]
    with pytest.raises(SessionExpired):
        await one.get("/")


async def expiry_takes_everything_and_is_told(ensemble: Ensemble) -> None:
    one, other = await ensemble.connect(), await ensemble.connect()
    await one.create("/e", b"", CreateMode.EPHEMERAL)
    mine, theirs = RecordingWatch(), RecordingWatch()
    expired = asyncio.Event()
    expirations: list[bool] = []

    def on_session_expired() -> None:
        expirations.append(True)
        expired.set()

    one.on_session_expired = on_session_expired
    await one.exists("/e", mine)
    await other.exists("/e", theirs)
    await ensemble.expire(one)
    assert await theirs.wait(1) == [WatchEvent(WatchEventType.DELETED, "/e")]
    async with asyncio.timeout(LIMIT_S):
        await expired.wait()
    for attempt in (one.get("/"), one.multi([Create("/x", b"")]), one.pipeline([Get("/")])):
        with pytest.raises(SessionExpired):
            await attempt

    before = one.session_id
    await ensemble.reconnect(one)
    assert one.session_id not in (0, before)
    assert await one.children("/") == []
    await one.create("/e", b"", CreateMode.EPHEMERAL)
    stat = await other.exists("/e")
    assert stat is not None
    assert stat.ephemeral_owner == one.session_id
    assert mine.events == []
    assert expirations == [True]


CASES: list[Callable[[Ensemble], Awaitable[None]]] = [
    verbs,
    the_last_change_of_children,
    null_data,
    refusals,
    watches_fire_once,
    watches_of_others,
    deletion_reaches_child_watches,
    no_watch_on_a_missing_node,
    multi_is_all_or_nothing,
    pipelines_answer_in_order,
    a_thousand_requests_happen_in_order,
    sequential_nodes_count_up,
    ephemerals_end_with_their_session,
    expiry_takes_everything_and_is_told,
]
