"""Proposals go to the controller, wherever it is, until they are answered."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common import lasting_work
from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.controller.events import AlterPartition, AlterPartitionItem, AlterPartitionResult
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_partition import AlterPartitionResponse
from kafkapy.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkapy.replication.isr import IsrChange
from kafkapy.replication.partition import Partition
from kafkapy.server.cluster.alter_partition_manager import AlterPartitionManager
from kafkapy.server.cluster.controller_codec import alter_partition_items, alter_partition_response
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.interbroker.node_to_controller import NodeToController
from kafkapy.server.replicas.isr_counts import IsrCounts
from tests.harness.cores.ports import ManualClock
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    RecordedItems,
    ScriptedNode,
    in_loop,
)
from tests.harness.storage.partitions import (
    TOPIC_ID,
    batch,
    log_manager,
    make_partition,
    partition_state,
)

BROKER_EPOCH = 77
LEADER_EPOCH = 4


class Manager(AlterPartitionManager):
    """That of broker 1. `events` are what its own controller is asked; `woken` are checked."""

    def __init__(self) -> None:
        self.metadata = MetadataCache()
        self.events = RecordedItems()
        self.woken = RecordedItems()
        self.isr_counts = IsrCounts()
        super().__init__(
            1,
            lambda: BROKER_EPOCH,
            self.metadata,
            self,  # type: ignore[arg-type]
            NodeToController(
                self.metadata, NodeClients(self.metadata, "I", "1", request_timeout_ms=LIMIT_MS)
            ),
            self.events.add,
            ManualClock(),
            retry_backoff_ms=1,
        )

    def check_delayed_requests(self, partition: Partition) -> None:
        self.woken.add(partition)

    def controller_is(self, controller_id: int, *nodes: ScriptedNode) -> None:
        brokers = [
            BrokerInfo(broker_id, (Endpoint("I", "127.0.0.1", node.port),))
            for broker_id, node in enumerate(nodes, 2)
        ]
        self.metadata.apply(UpdateMetadataCommand(controller_id, 1, 1, [], brokers))

    async def event(self, number: int) -> AlterPartition:
        """The `number`th event (from 1)."""
        found: AlterPartition = (await self.events.at_least(number))[number - 1]
        return found


@asynccontextmanager
async def running(manager: Manager) -> Any:
    manager.start()
    yield manager
    await manager.stop()


class Leader:
    """Partitions led by broker 1, whose ISR (1, 2, 3) is to shrink."""

    def __init__(self, directory: Path) -> None:
        self.logs = log_manager(directory)

    def lead(self, index: int = 0) -> Partition:
        partition = make_partition(self.logs, index)
        row = partition_state(1, (1, 2, 3), leader_epoch=LEADER_EPOCH, partition=index)
        partition.make_leader(row, 0)
        return partition


@pytest.fixture
def leader(tmp_path: Path) -> Leader:
    return Leader(tmp_path)


def shrink(partition: Partition, isr: tuple[int, ...] = (1, 2)) -> IsrChange:
    """Make an ISR the pending change."""
    change = IsrChange(
        partition.topic_partition,
        partition.topic_id,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        isr_epochs=(BROKER_EPOCH,),
    )
    partition.in_sync.propose(change)
    return change


def propose(manager: Manager, partition: Partition, isr: tuple[int, ...] = (1, 2)) -> None:
    manager.submit(partition, shrink(partition, isr))


def granted(item: AlterPartitionItem) -> LeaderAndIsr:
    return LeaderAndIsr(1, item.leader_epoch, item.new_isr, item.partition_epoch + 1, -1)


def grant(items: Any) -> AlterPartitionResult:
    """The controller's yes."""
    return AlterPartitionResult(rows=[(i, ErrorCode.NONE, granted(i)) for i in items])


def refuse(items: Any, error: ErrorCode) -> AlterPartitionResult:
    return AlterPartitionResult(rows=[(i, error, None) for i in items])


def test_the_own_controller_commits_and_who_waited_is_woken(leader: Leader) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        partition.append_as_leader(batch(), 1, 5, 5, 11)
        async with running(Manager()) as manager:
            manager.controller_is(1)
            propose(manager, partition, (1,))
            event = await manager.event(1)
            assert (event.broker_id, event.broker_epoch) == (1, BROKER_EPOCH)
            expected = ("", TOPIC_ID, 0, LEADER_EPOCH, (1,), 0, 0, (BROKER_EPOCH,))
            assert event.items == [AlterPartitionItem(*expected)]
            assert (set(partition.isr), partition.log.high_watermark) == ({1, 2, 3}, 0)
            event.reply(grant(event.items))
            assert await manager.woken.at_least(1) == [partition]
            assert (set(partition.isr), partition.partition_epoch) == ({1}, 1)
            assert partition.log.high_watermark == 1

    in_loop(scenario)


def test_one_request_is_under_way_and_takes_all_that_waited(leader: Leader) -> None:
    async def scenario() -> None:
        partitions = [leader.lead(index) for index in range(4)]
        async with running(Manager()) as manager:
            manager.controller_is(1)
            propose(manager, partitions[0])
            first = await manager.event(1)
            for partition in partitions[1:]:
                propose(manager, partition)
            await asyncio.sleep(0)
            assert len(manager.events.items) == 1
            first.reply(grant(first.items))
            second = await manager.event(2)
            assert [item.partition for item in second.items] == [1, 2, 3]
            second.reply(grant(second.items))
            assert await manager.woken.at_least(4) == partitions

    in_loop(scenario)


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_a_request_refused_as_a_whole_is_sent_again(leader: Leader, error: ErrorCode) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        async with running(Manager()) as manager:
            manager.controller_is(1)
            propose(manager, partition)
            for number in (1, 2):
                (await manager.event(number)).reply(AlterPartitionResult(error))
            event = await manager.event(3)
            event.reply(grant(event.items))
            await manager.woken.at_least(1)
            assert partition.isr == {1, 2}

    in_loop(scenario)


def test_a_row_is_answered_dropped_or_sent_again_by_its_own_code(leader: Leader) -> None:
    async def scenario() -> None:
        kept, ineligible, fenced, again, silent = (leader.lead(index) for index in range(5))
        async with running(Manager()) as manager:
            manager.controller_is(1)
            for partition in (kept, ineligible, fenced, again, silent):
                propose(manager, partition)
            event = await manager.event(1)
            rows = dict(enumerate(event.items))
            event.reply(
                AlterPartitionResult(
                    rows=[
                        (rows[0], ErrorCode.NONE, granted(rows[0])),
                        (rows[1], ErrorCode.INELIGIBLE_REPLICA, None),
                        (rows[2], ErrorCode.FENCED_LEADER_EPOCH, None),
                        (rows[3], ErrorCode.UNKNOWN_SERVER_ERROR, None),
                    ]
                )
            )
            second = await manager.event(2)
            assert [item.partition for item in second.items] == [3, 4]
            assert manager.woken.items == [kept, ineligible]
            assert (set(kept.isr), set(ineligible.isr)) == ({1, 2}, {1, 2, 3})
            assert (ineligible.in_sync.pending, fenced.in_sync.pending is None) == (None, False)
            second.reply(grant(second.items))
            await manager.woken.at_least(4)
            counts = manager.isr_counts
            assert (counts.shrinks, counts.expands, counts.failed_updates) == (3, 0, 3)

    in_loop(scenario)


def test_what_a_leader_and_isr_has_settled_is_not_sent_again(leader: Leader) -> None:
    async def scenario() -> None:
        settled, gone, waiting = (leader.lead(index) for index in range(3))
        async with running(Manager()) as manager:
            manager.controller_is(1)
            for partition in (settled, gone, waiting):
                propose(manager, partition)
            event = await manager.event(1)
            settled.in_sync.commit((1, 2, 3))
            gone.is_leader = False
            event.reply(refuse(event.items, ErrorCode.UNKNOWN_SERVER_ERROR))
            second = await manager.event(2)
            assert [item.partition for item in second.items] == [2]
            second.reply(grant(second.items))

    in_loop(scenario)


def test_a_newer_proposal_takes_the_place_of_one_that_was_not_answered(leader: Leader) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        async with running(Manager()) as manager:
            manager.controller_is(1)
            propose(manager, partition, (1, 2))
            event = await manager.event(1)
            partition.in_sync.commit((1, 2, 3))
            propose(manager, partition, (1, 3))
            event.reply(refuse(event.items, ErrorCode.UNKNOWN_SERVER_ERROR))
            second = await manager.event(2)
            assert [item.new_isr for item in second.items] == [(1, 3)]
            second.reply(grant(second.items))

    in_loop(scenario)


def remote(latest: int, first: Any = None) -> Any:
    """A controller that serves AlterPartition up to `latest`, and grants all but `first`."""
    specials = iter([] if first is None else [first])

    def answer(request: Any, version: int) -> Any:
        if request.API_KEY == ApiKey.API_VERSIONS:
            row = ApiVersion(api_key=ApiKey.ALTER_PARTITION, min_version=0, max_version=latest)
            return ApiVersionsResponse(api_keys=[row] if latest >= 0 else [])
        special = next(specials, None)
        if special is not None:
            return special
        return alter_partition_response(grant(alter_partition_items(request)), version)

    return answer


def versions_asked(node: ScriptedNode) -> list[int]:
    key = ApiKey.ALTER_PARTITION
    return [h.api_version for h, _ in node.requests.items if h.api_key == key]


@pytest.mark.parametrize("latest", [0, 1, 2, 3, 9])
def test_another_broker_is_asked_in_the_latest_version_that_both_know(
    leader: Leader, latest: int
) -> None:
    async def scenario() -> None:
        partitions = [leader.lead(0), leader.lead(1)]
        async with ScriptedNode(remote(latest)) as node, running(Manager()) as manager:
            manager.controller_is(2, node)
            for partition in partitions:
                propose(manager, partition)
            await manager.woken.at_least(2)
            assert [partition.isr for partition in partitions] == [{1, 2}, {1, 2}]
            assert versions_asked(node) == [min(latest, 3)]
            assert node.received_requests()[-1].broker_epoch == BROKER_EPOCH

    in_loop(scenario)


def test_a_topic_without_an_id_is_asked_for_by_name(leader: Leader) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        partition.topic_id = ZERO_UUID
        async with ScriptedNode(remote(3)) as node, running(Manager()) as manager:
            manager.controller_is(2, node)
            propose(manager, partition)
            await manager.woken.at_least(1)
            assert versions_asked(node) == [1]
            manager.controller_is(1)
            propose(manager, partition, (1,))
            [item] = (await manager.event(1)).items
            assert TopicPartition(item.topic, item.partition) == partition.topic_partition

    in_loop(scenario)


@pytest.mark.parametrize(
    "first", [DISCONNECT, AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)]
)
def test_a_controller_that_fails_is_asked_again(leader: Leader, first: Any) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        async with ScriptedNode(remote(3, first)) as node, running(Manager()) as manager:
            manager.controller_is(2, node)
            propose(manager, partition)
            await manager.woken.at_least(1)
            assert (set(partition.isr), versions_asked(node)) == ({1, 2}, [3, 3])

    in_loop(scenario)


def test_whoever_becomes_controller_is_asked_next(leader: Leader) -> None:
    async def scenario() -> None:
        partition = leader.lead()
        async with (
            ScriptedNode(remote(-1)) as odd,
            ScriptedNode(remote(3)) as node,
            running(Manager()) as manager,
        ):
            propose(manager, partition)
            manager.controller_is(2, odd, node)
            await odd.requests.at_least(1)
            manager.controller_is(1, odd, node)
            (await manager.event(1)).reply(AlterPartitionResult(ErrorCode.NOT_CONTROLLER))
            manager.controller_is(3, odd, node)
            await manager.woken.at_least(1)
            assert partition.isr == {1, 2}
            assert versions_asked(odd) == []

    in_loop(scenario)


def test_after_a_fault_that_nobody_expected_proposals_are_sent_again(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no ISR of this leader changes any more, and acks=all waits for a dead follower."""
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scenario() -> None:
        first, second = leader.lead(0), leader.lead(1)
        async with running(Manager()) as manager:
            manager.controller_is(1)
            propose(manager, first)
            propose(manager, second)
            event = await manager.event(1)
            event.reply(None)  # type: ignore[arg-type]
            assert (await manager.event(2)).items == event.items

    in_loop(scenario)
