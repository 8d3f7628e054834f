"""Producer ids are never given twice."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import StoreUnavailable
from tests.harness.scripted import admins


def test_ids_run_through_blocks_and_restarts() -> None:
    async def scenario(store: ZkStore) -> list[int]:
        one, two = ProducerIdManager(1, store), ProducerIdManager(2, store)
        given = [await one.next_id() for _ in range(1001)]
        given += [await two.next_id(), await ProducerIdManager(1, store).next_id()]
        return given

    given = asyncio.run(scenario(admins.store()))
    assert given == [*range(1000), 1000, 2000, 3000]


def test_askers_at_the_same_moment_get_different_ids() -> None:
    async def scenario(store: ZkStore) -> list[int]:
        ids = ProducerIdManager(1, store)
        return await asyncio.gather(*(ids.next_id() for _ in range(50)))

    assert sorted(asyncio.run(scenario(admins.store()))) == list(range(50))


def test_no_block_means_try_again() -> None:
    async def scenario(store: ZkStore) -> int:
        ids = ProducerIdManager(1, store)
        allocate = store.allocate_producer_id_block

        async def fail(_: int) -> None:
            raise StoreUnavailable("/latest_producer_id_block")

        store.allocate_producer_id_block = fail  # type: ignore[method-assign,assignment]
        with pytest.raises(ApiError) as refused:
            await ids.next_id()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        store.allocate_producer_id_block = allocate  # type: ignore[method-assign]
        return await ids.next_id()

    assert asyncio.run(scenario(admins.store())) == 0
