"""Registration: epochs, retries, duplicates."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint
from kafkapy.zk.stores.broker_store import BrokerIdTaken, Registration
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import WatchEvent
from tests.harness.cores.znodes import run, server


def info(broker_id: int, port: int = 9092) -> BrokerInfo:
    return BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "h", port),))


def test_the_broker_epoch_is_the_czxid_and_grows_with_each_registration() -> None:
    ensemble = server()
    zk = ensemble.connect()
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    first = run(store.brokers.register(info(1), 0))
    node = ensemble.tree.nodes["/brokers/ids/1"].stat
    assert (node.czxid, node.version, node.ephemeral_owner) == (first, 1, zk.session_id)
    run(store.brokers.update(info(1, 9099), 0))
    assert run(store.brokers.get(1)) == Registration(info(1, 9099), first)
    ensemble.expire(zk.session_id)
    zk.reconnect()
    assert run(store.brokers.register(info(1), 0)) > first


def test_a_repeated_registration_of_one_session_is_accepted() -> None:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    epoch = run(store.brokers.register(info(1), 0))
    assert run(store.brokers.register(info(1), 0)) == epoch


def test_the_node_of_our_own_dead_session_is_replaced() -> None:
    ensemble = server()
    old, new = ensemble.connect(), ensemble.connect()
    store = ZkStore(new)
    run(store.create_persistent_paths())
    first = run(ZkStore(old).brokers.register(info(1), 0))
    assert run(store.brokers.register(info(1), 0, old.session_id)) > first


def test_a_used_id_or_address_is_refused() -> None:
    ensemble = server()
    store, other = ZkStore(ensemble.connect()), ZkStore(ensemble.connect())
    run(store.create_persistent_paths())
    run(store.brokers.register(info(1), 0))
    with pytest.raises(BrokerIdTaken, match="broker id 1 is already registered"):
        run(other.brokers.register(info(1, 9999), 0))
    with pytest.raises(BrokerIdTaken, match="h:9092 of broker 2 is already that of broker 1"):
        run(other.brokers.register(info(2), 0))
    assert run(store.brokers.ids()) == [1]


def test_who_registered_a_broker() -> None:
    ensemble = server()
    store, other = ZkStore(ensemble.connect()), ensemble.connect()
    run(store.create_persistent_paths())
    assert run(store.brokers.owner(1)) == 0
    run(ZkStore(other).brokers.register(info(1), 0))
    seen: list[WatchEvent] = []
    assert run(store.brokers.owner(1, seen.append)) == other.session_id
    ensemble.expire(other.session_id)
    assert len(seen) == 1
    assert run(store.brokers.owner(1)) == 0


def test_reading_brokers() -> None:
    ensemble = server()
    store = ZkStore(ensemble.connect())
    run(store.create_persistent_paths())
    for broker_id in (10, 9):
        other = ZkStore(ensemble.connect())
        run(other.brokers.register(info(broker_id, broker_id), 0))
    seen: list[WatchEvent] = []
    assert list(run(store.brokers.get_all(seen.append))) == [9, 10]
    assert run(store.brokers.get(11)) is None
    run(ZkStore(ensemble.connect()).brokers.register(info(11, 11), 0))
    assert len(seen) == 1


def test_a_child_that_is_no_broker_id_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    zk = server().connect()
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    run(store.brokers.register(info(1), 0))
    for name in ("stray", "-1", "1_0", "01", "2147483648", "9" * 5000):
        run(zk.create(f"/brokers/ids/{name}", b""))
    for _ in range(2):
        assert run(store.brokers.ids()) == [1]
        assert list(run(store.brokers.get_all())) == [1]
    assert caplog.text.count("/brokers/ids has the child 'stray', which is no broker id") == 1


def test_generated_ids_start_above_the_reserved_ones() -> None:
    store = ZkStore(server().connect())
    assert [run(store.brokers.generate_id(1000)) for _ in range(3)] == [1001, 1002, 1003]
