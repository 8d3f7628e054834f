"""A broker registers what it advertises, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import errno
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from kafkapy.common import lasting_work
from kafkapy.common.cluster_state import BrokerInfo, Endpoint
from kafkapy.common.errors import KafkapyError
from kafkapy.controller.events import SessionExpired, Startup
from kafkapy.server.cluster import cluster_member
from kafkapy.server.cluster.cluster_member import ClusterMember
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.ports import ManualClock
from tests.harness.scripted import admins


def member(store: ZkStore, nothing: Any = None) -> ClusterMember:
    """Broker 1, whose other parts do nothing."""
    nothing = nothing or MagicMock()
    nothing.start = AsyncMock()
    return ClusterMember(
        KafkaConfig({"log.dirs": "/d", "broker.id": "1"}),
        1,
        nothing,
        nothing,
        nothing,
        (),
        (),
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        store,
        ManualClock(),
    )


def rejoining_parts() -> Any:
    """Parts of a member whose session may expire and be replaced."""
    parts = MagicMock()
    for each in (parts.start, parts.reconnect, parts.apply_all, parts.process):
        each.side_effect = AsyncMock()
    parts.remove_deleted_topics = AsyncMock()
    parts.zookeeper.session_id = 7
    return parts


def test_endpoints_that_change_while_it_registers_are_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> tuple[Endpoint, ...]:
        store = admins.store(brokers=())
        made, register = member(store), store.brokers.register

        async def slow(broker: BrokerInfo, timestamp_ms: int, previous: int) -> int:
            await made.update_endpoints((Endpoint("PLAINTEXT", "new", 1),))
            return await register(broker, timestamp_ms, previous)

        monkeypatch.setattr(store.brokers, "register", slow)
        await made.join((Endpoint("PLAINTEXT", "old", 1),), AsyncMock())
        found = await store.brokers.get(1)
        assert found is not None
        return found.broker.endpoints

    assert asyncio.run(scenario()) == (Endpoint("PLAINTEXT", "new", 1),)


def test_a_broker_with_a_new_session_forgets_what_was_deleted_meanwhile() -> None:
    async def scenario() -> AsyncMock:
        parts = rejoining_parts()
        made = member(admins.store(brokers=()), parts)
        await made.join((), AsyncMock())
        expired = parts.on_session_expired.call_args[0][0]
        expired()
        await parts.call_args[0][0]
        return parts.remove_deleted_topics

    asyncio.run(scenario()).assert_awaited_once()


@pytest.mark.parametrize(
    "fault",
    [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")],
)
def test_a_broker_rejoins_once_it_has_descriptors_and_threads_for_a_new_session(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scenario() -> list[Any]:
        parts = rejoining_parts()
        parts.reconnect.side_effect = AsyncMock(side_effect=[fault, None])
        made = member(admins.store(brokers=()), parts)
        await made.join((), AsyncMock())
        parts.on_session_expired.call_args[0][0]()
        await parts.call_args[0][0]
        return [call.args[0] for call in parts.submit.call_args_list]

    assert asyncio.run(scenario()) == [SessionExpired(), Startup()]


@pytest.mark.parametrize("fault", [KafkapyError("unreadable"), ValueError("unexpected")])
def test_an_error_after_the_registration_does_not_end_the_new_session(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)
    monkeypatch.setattr(cluster_member, "_RETRY_BACKOFF_S", 0)

    async def scenario() -> tuple[int, int]:
        parts, store = rejoining_parts(), admins.store(brokers=())
        made = member(store, parts)
        await made.join((), AsyncMock())
        parts.apply_all.side_effect = AsyncMock(side_effect=[fault, fault, None])
        parts.on_session_expired.call_args[0][0]()
        await parts.call_args[0][0]
        return parts.reconnect.call_count, parts.apply_all.call_count

    assert asyncio.run(scenario()) == (1, 3)


def test_a_session_that_expires_while_the_broker_rejoins_is_replaced_too() -> None:
    async def scenario() -> int:
        parts = rejoining_parts()
        made = member(admins.store(brokers=()), parts)
        await made.join((), AsyncMock())
        expired = parts.on_session_expired.call_args[0][0]

        async def expire_once() -> None:
            parts.process.side_effect = AsyncMock()
            parts.zookeeper.session_id += 1
            expired()

        parts.process.side_effect = expire_once
        expired()
        await parts.call_args[0][0]
        return int(parts.reconnect.call_count)

    assert asyncio.run(scenario()) == 2


def test_a_broker_may_be_replaced_from_the_lost_connection_to_the_next_leader_and_isr() -> None:
    """Only a broker that receives elections may refuse a sequence number by its log alone."""

    async def scenario() -> list[bool]:
        parts = rejoining_parts()
        made = member(admins.store(brokers=()), parts)
        await made.join((), AsyncMock())
        seen = []

        def look(connected: bool) -> None:
            parts.is_connected.return_value = connected
            seen.append(parts.may_be_replaced())

        parts.leader_and_isr_epoch = parts.broker_epoch
        look(connected=True)
        look(connected=False)
        look(connected=True)
        expired = parts.on_session_expired.call_args[0][0]
        expired()
        look(connected=True)
        await parts.call_args[0][0]
        parts.broker_epoch += 1  # as in a session that is new to ZooKeeper too
        look(connected=True)
        parts.leader_and_isr_epoch = parts.broker_epoch
        look(connected=True)
        return seen

    assert asyncio.run(scenario()) == [False, True, False, True, True, False]
