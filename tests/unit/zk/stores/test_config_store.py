"""Configs, their guard on the controller, and their notifications."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.fencing import ControllerMoved
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ConfigChange
from kafkapy.zk.zookeeper import BadVersion, CreateMode, Op, OpResult, SessionExpired, WatchEvent
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import AnswerLosingZooKeeper, MemoryZooKeeper, run, server


def prepared() -> ZkStore:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    run(store.election.elect(1, 0))
    return store


def test_set_and_replace() -> None:
    store = prepared()
    assert run(store.configs.get("topics", "t")) == {}
    run(store.configs.set("topics", "t", {"retention.ms": "1"}))
    run(store.configs.set("topics", "t", {"segment.bytes": "99"}))
    assert run(store.configs.get("topics", "t")) == {"segment.bytes": "99"}
    node = run(store.zookeeper.get("/config/topics/t"))
    assert node.data == b'{"version":1,"config":{"segment.bytes":"99"}}'
    assert node.stat.version == 1


@pytest.mark.parametrize("before", [{}, {"a": "1"}])
@pytest.mark.parametrize("theirs", [{}, {"a": "2"}])
@pytest.mark.parametrize("kind", ["topics", "clients"])
def test_a_change_that_another_has_overtaken_is_refused(
    kind: str, before: dict[str, str], theirs: dict[str, str]
) -> None:
    store = prepared()
    run(store.configs.set(kind, "n", before))
    configs, version = run(store.configs.get_versioned(kind, "n"))
    assert configs == before
    run(store.configs.set(kind, "n", {"b": "1"}))
    run(store.configs.set(kind, "n", theirs))
    if kind == "clients" and not before and not theirs:
        return  # there is no node again
    with pytest.raises(BadVersion):
        run(store.configs.set(kind, "n", before | {"c": "1"}, version))
    assert run(store.configs.get(kind, "n")) == theirs


def test_a_user_that_gets_configs_is_not_forgotten_with_its_last_client() -> None:
    store = prepared()
    run(store.configs.set("users", "u/clients/c", {"k": "v"}))
    get = store.configs.get_versioned

    async def overtaken(kind: str, name: str) -> tuple[dict[str, str], int]:
        found = await get(kind, name)
        store.configs.get_versioned = get  # type: ignore[method-assign]
        await store.configs.set("users", "u", {"SCRAM-SHA-256": "secret"})
        return found

    store.configs.get_versioned = overtaken  # type: ignore[method-assign]
    run(store.configs.set("users", "u/clients/c", {}))
    assert run(store.configs.get_all("users")) == {"u": {"SCRAM-SHA-256": "secret"}}


@pytest.mark.parametrize("before", [{}, {"k": "1"}])
@pytest.mark.parametrize("wanted", [{}, {"k": "2"}])
@pytest.mark.parametrize("kind", ["topics", "clients"])
def test_a_write_whose_answer_was_lost_counts_as_written(
    kind: str, before: dict[str, str], wanted: dict[str, str]
) -> None:
    """The session sends it again after a lost connection, and meets its own version."""
    zk = AnswerLosingZooKeeper(server())
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    run(store.election.elect(1, 0))
    if before:
        run(store.configs.set(kind, "n", before))
    _, version = run(store.configs.get_versioned(kind, "n"))
    zk.lost_path = f"/config/{kind}/n"
    run(store.configs.set(kind, "n", wanted, version))
    assert run(store.configs.get(kind, "n")) == wanted


class BriefZooKeeper(MemoryZooKeeper):
    """A session of a broker that ends after its next write."""

    ends = False

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        results = await super().multi(ops)
        if self.ends:
            raise SessionExpired(ops[0].path)
        return results

    async def create(
        self, path: str, data: bytes = b"", mode: CreateMode = CreateMode.PERSISTENT
    ) -> str:
        created = await super().create(path, data, mode)
        if self.ends:
            raise SessionExpired(path)
        return created


@pytest.mark.parametrize(
    ("before", "wanted"), [({}, {"k": "2"}), ({"k": "1"}, {"k": "2"}), ({"k": "1"}, {})]
)
@pytest.mark.parametrize("kind", ["topics", "clients"])
def test_every_broker_hears_of_a_change_at_which_a_broker_ends(
    kind: str, before: dict[str, str], wanted: dict[str, str]
) -> None:
    """Else none would apply it before it starts again; a removed password would go on to work."""
    zookeeper = server()
    zk, store = BriefZooKeeper(zookeeper), ZkStore(zookeeper.connect())
    run(store.create_persistent_paths())
    run(store.election.elect(1, 0))
    run(store.configs.set(kind, "n", before))
    heard = run(store.configs.changes())
    zk.ends = True
    with pytest.raises(SessionExpired):
        run(ZkStore(zk).configs.set(kind, "n", wanted))
    assert run(store.configs.get(kind, "n")) == wanted
    assert len(run(store.configs.changes())) == len(heard) + 1


def test_without_a_controller_nothing_is_written() -> None:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    with pytest.raises(ControllerMoved):
        run(store.configs.set("topics", "t", {}))
    assert run(store.zookeeper.exists("/config/topics/t")) is None


def test_a_tool_writes_before_any_broker_has_been_there() -> None:
    """No controller, and none of the nodes that brokers make."""
    store = ZkStore(server().connect())
    for configs in ({"SCRAM-SHA-256": "a"}, {"SCRAM-SHA-256": "b"}):
        run(store.configs.set("users", "u", configs, needs_controller=False))
        assert run(store.configs.get("users", "u")) == configs
    assert run(store.configs.changes()) == [0, 1]
    run(store.configs.set("users", "u", {}, needs_controller=False))
    assert run(store.zookeeper.exists("/config/users/u")) is None


def test_all_entities_sorted_with_nested_users() -> None:
    store = prepared()
    for kind, name in (
        ("topics", "b"),
        ("topics", "a"),
        ("brokers", "<default>"),
        ("users", "alice"),
        ("users", "bob/clients/app"),
    ):
        run(store.configs.set(kind, name, {"k": name}))
    assert run(store.configs.get_all("topics")) == {"a": {"k": "a"}, "b": {"k": "b"}}
    assert run(store.configs.get_all("brokers")) == {"<default>": {"k": "<default>"}}
    assert run(store.configs.get_all("users")) == {
        "alice": {"k": "alice"},
        "bob": {},
        "bob/clients/app": {"k": "bob/clients/app"},
    }
    assert run(store.configs.get_all("ips")) == {}


def test_notifications_are_numbered_and_watched() -> None:
    store = prepared()
    seen: list[WatchEvent] = []
    assert run(store.configs.changes(seen.append)) == []
    run(store.configs.set("topics", "t", {}))
    run(store.configs.set("brokers", "1", {}))
    assert len(seen) == 1
    assert run(store.zookeeper.children("/config/changes")) == [
        "config_change_0000000000",
        "config_change_0000000001",
    ]
    assert run(store.configs.changes()) == [0, 1]
    found = run(store.configs.change(1))
    assert found is not None
    assert found[0] == ConfigChange("brokers", "1")
    assert run(store.configs.change(7)) is None


def test_old_notifications_are_purged() -> None:
    store = prepared()
    now_ms = ManualClock().time_ms()
    run(store.configs.set("topics", "t", {}))
    run(store.configs.purge_changes([0, 5], now_ms + CHANGE_EXPIRATION_MS))
    assert run(store.configs.changes()) == [0]
    run(store.configs.purge_changes([0, 5], now_ms + CHANGE_EXPIRATION_MS + 1))
    assert run(store.configs.changes()) == []


@pytest.mark.parametrize(
    ("kind", "name", "others", "left"),
    [
        ("users", "u", [], []),
        ("clients", "c", ["d"], ["d"]),
        ("ips", "10.0.0.1", [], []),
        ("users", "u/clients/c", [], []),
        ("users", "u/clients/c", ["u"], ["u"]),
        ("users", "u/clients/c", ["u/clients/d"], ["u", "u/clients/d"]),
        ("users", "u", ["u/clients/c"], ["u", "u/clients/c"]),
    ],
)
def test_who_has_no_configs_left_is_forgotten(
    kind: str, name: str, others: list[str], left: list[str]
) -> None:
    store = prepared()
    for each in (name, *others):
        run(store.configs.set(kind, each, {"k": "v"}))
    run(store.configs.set(kind, name, {}))
    assert list(run(store.configs.get_all(kind))) == left
    assert run(store.configs.get(kind, name)) == {}
    run(store.configs.set(kind, name, {}))  # again is no fault
    assert list(run(store.configs.get_all(kind))) == left
    if "/" in name and not others:
        assert run(store.zookeeper.exists("/config/users/u")) is None


def test_without_a_controller_nobody_is_forgotten() -> None:
    store = prepared()
    run(store.configs.set("users", "u", {"k": "v"}))
    run(store.zookeeper.delete("/controller"))
    with pytest.raises(ControllerMoved):
        run(store.configs.set("users", "u", {}))
    assert run(store.configs.get("users", "u")) == {"k": "v"}


def test_a_broker_that_does_not_run_yet_needs_no_controller() -> None:
    store = ZkStore(server().connect())
    for configs in ({"a": "1"}, {"b": "2"}):
        run(store.configs.set_before_start("1", configs))
        assert run(store.configs.get("brokers", "1")) == configs
