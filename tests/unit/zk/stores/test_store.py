"""The cluster's own nodes."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ProducerIdBlock, encode_producer_id_block
from kafkapy.zk.zookeeper import BadVersion
from tests.harness.cores.znodes import run, server


def test_persistent_paths_can_be_created_again_and_again() -> None:
    store = ZkStore(server().connect())
    for _ in range(2):
        run(store.create_persistent_paths())
    for path in paths.PERSISTENT_PATHS:
        assert run(store.zookeeper.get(path)).data == b""


def test_the_first_cluster_id_stays() -> None:
    store = ZkStore(server().connect())
    assert run(store.cluster_id()) is None
    assert run(store.get_or_create_cluster_id("one")) == "one"
    assert run(store.get_or_create_cluster_id("two")) == "one"
    assert run(store.cluster_id()) == "one"


def test_the_feature_node_is_written_once() -> None:
    store = ZkStore(server().connect())
    fence = run(store.election.elect(1, 0))
    for _ in range(2):
        run(store.create_feature_node(fence))
    assert run(store.zookeeper.get("/feature")).stat.version == 0


def test_producer_id_blocks_follow_each_other() -> None:
    ensemble = server()
    one, two = ZkStore(ensemble.connect()), ZkStore(ensemble.connect())
    blocks = [run(store.allocate_producer_id_block(i)) for i, store in ((1, one), (2, two))]
    assert blocks == [ProducerIdBlock(1, 0, 999), ProducerIdBlock(2, 1000, 1999)]


def test_a_block_taken_meanwhile_is_not_given_twice() -> None:
    ensemble = server()
    zk = ensemble.connect()
    one, two = ZkStore(zk), ZkStore(ensemble.connect())
    original = zk.set
    refused: list[str] = []

    async def race(path: str, data: bytes, version: int = -1):  # type: ignore[no-untyped-def]
        if not refused:
            run(two.allocate_producer_id_block(2))
        try:
            return await original(path, data, version)
        except BadVersion as error:
            refused.append(error.path)
            raise

    zk.set = race  # type: ignore[method-assign]
    assert run(one.allocate_producer_id_block(1)) == ProducerIdBlock(1, 1000, 1999)
    assert refused == ["/latest_producer_id_block"]


def test_producer_ids_can_be_used_up() -> None:
    store = ZkStore(server().connect())
    last = ProducerIdBlock(1, 2**63 - 1000, 2**63 - 1)
    run(store.zookeeper.create("/latest_producer_id_block", encode_producer_id_block(last)))
    with pytest.raises(KafkapyError, match="used up"):
        run(store.allocate_producer_id_block(1))
