"""The controller's channels: in order, until answered, and nobody waits for somebody else."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kafkapy.common import lasting_work
from kafkapy.common.cluster_state import (
    BrokerInfo,
    CommandResult,
    Endpoint,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    StopReplicaPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import LeaderAndIsrResponse, StopReplicaResponse
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrTopicError,
)
from kafkapy.protocol.messages.leader_and_isr import LeaderAndIsrResponse as LeaderAndIsrMessage
from kafkapy.server.cluster import broker_channels
from kafkapy.server.cluster.broker_channels import BrokerChannels
from kafkapy.server.cluster.control_request_handler import Command
from kafkapy.server.interbroker.node_link import NodeUnavailable
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    SILENCE,
    RecordedItems,
    ScriptedNode,
    in_loop,
)
from tests.harness.storage.partitions import TOPIC_ID, partition_state

LISTENER = "INTERNAL"
T0 = TopicPartition("t", 0)


def lead(epoch: int = 5) -> LeaderAndIsrCommand:
    return LeaderAndIsrCommand(1, epoch, 7, [partition_state()])


def metadata(epoch: int = 5) -> UpdateMetadataCommand:
    return UpdateMetadataCommand(1, epoch, 7, [], [])


def stop(epoch: int = 5) -> StopReplicaCommand:
    return StopReplicaCommand(1, epoch, 7, [StopReplicaPartition("t", 0, 3, True)])


def fine(request: Any, version: int = 0) -> Any:
    return response_class(request.API_KEY)()


class Own:
    """This broker's receiver."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def apply(self, command: Command) -> CommandResult:
        self.commands.append(command)
        return CommandResult(partition_errors={T0: ErrorCode.NONE})


class Channels(BrokerChannels):
    """Those of controller 1; `events` are the answers."""

    def __init__(self, request_timeout_ms: int = LIMIT_MS) -> None:
        self.own = Own()
        self.events = RecordedItems()
        super().__init__(
            1,
            LISTENER,
            self.own,
            self.events.add,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=1,
        )

    def add(self, broker_id: int, node: ScriptedNode, epoch: int = 7) -> None:
        endpoints = (Endpoint("CLIENT", "nowhere.invalid", 1), at(node))
        self.add_broker(BrokerInfo(broker_id, endpoints), epoch)


def at(node: ScriptedNode) -> Endpoint:
    return Endpoint(LISTENER, "127.0.0.1", node.port)


def keys_and_epochs(node: ScriptedNode) -> list[tuple[ApiKey, int]]:
    return [(request.API_KEY, request.controller_epoch) for request in node.received_requests()]


def test_commands_go_out_in_order_one_at_a_time_in_the_versions_of_3_9() -> None:
    under_way = 0

    async def scenario() -> None:
        async def slowly(request: Any) -> Any:
            nonlocal under_way
            under_way += 1
            assert under_way == 1
            await asyncio.sleep(0)
            under_way -= 1
            return fine(request)

        async with ScriptedNode(lambda r, v: slowly(r)) as node:
            channels = Channels()
            channels.add(2, node)
            for epoch in (1, 2):
                channels.send_leader_and_isr(2, lead(epoch))
                channels.send_update_metadata(2, metadata(epoch))
                channels.send_stop_replica(2, stop(epoch))
            await channels.events.at_least(4)
            assert [
                (header.api_key, header.api_version, header.client_id, request.controller_epoch)
                for header, request in node.requests.items
            ] == [
                (key, version, "1", n) for n in (1, 2) for key, version in [(4, 7), (6, 8), (5, 4)]
            ]
            assert node.connections == 1
            await channels.close()

    in_loop(scenario)


def test_answers_become_events() -> None:
    def answer(request: Any, version: int) -> Any:
        if request.API_KEY == ApiKey.LEADER_AND_ISR:
            row = LeaderAndIsrPartitionError(partition_index=0, error_code=56)
            topic = LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=[row])
            return LeaderAndIsrMessage(topics=[topic])
        made = fine(request)
        made.error_code = 11
        return made

    async def scenario() -> None:
        async with ScriptedNode(answer) as node:
            channels = Channels()
            channels.add(2, node)
            channels.send_leader_and_isr(2, lead())
            channels.send_update_metadata(2, metadata())
            channels.send_stop_replica(2, stop())
            assert await channels.events.at_least(2) == [
                LeaderAndIsrResponse(
                    2,
                    lead().broker_epoch,
                    CommandResult(partition_errors={T0: ErrorCode.KAFKA_STORAGE_ERROR}),
                ),
                StopReplicaResponse(2, stop(), CommandResult(ErrorCode.STALE_CONTROLLER_EPOCH)),
            ]
            await channels.close()

    in_loop(scenario)


def test_a_lost_connection_has_the_same_request_sent_again_before_the_next() -> None:
    answers = iter([DISCONNECT, DISCONNECT])

    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: next(answers, None) or fine(r)) as node:
            channels = Channels()
            channels.add(2, node)
            channels.send_leader_and_isr(2, lead())
            channels.send_stop_replica(2, stop())
            await channels.events.at_least(2)
            keys = [request.API_KEY for request in node.received_requests()]
            assert keys == [ApiKey.LEADER_AND_ISR] * 3 + [ApiKey.STOP_REPLICA]
            assert node.connections == 3
            await channels.close()

    in_loop(scenario)


def test_each_new_reason_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that starts refuses connections first. The reason after it may be a certificate."""
    caplog.set_level(logging.DEBUG, broker_channels.logger.name)
    reasons = ["refused", "refused", "wrong certificate"]

    async def request(body: Any, version: int) -> Any:
        if reasons:
            raise NodeUnavailable(reasons.pop(0))
        return fine(body)

    async def scenario() -> None:
        async with ScriptedNode(fine) as node:
            channels = Channels()
            channels.add(2, node)
            target = channels._channels[2]._target
            assert isinstance(target, broker_channels._RemoteBroker)
            monkeypatch.setattr(target.client, "request", request)
            channels.send_stop_replica(2, stop())
            await channels.events.at_least(1)
            await channels.close()

    in_loop(scenario)
    assert [(each.levelname, each.args[-1]) for each in caplog.records] == [
        ("WARNING", "refused"),
        ("DEBUG", "refused"),
        ("WARNING", "wrong certificate"),
    ]


def test_an_answer_that_does_not_come_in_time_is_asked_for_again() -> None:
    answers = iter([SILENCE])

    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: next(answers, None) or fine(r)) as node:
            channels = Channels(request_timeout_ms=50)
            channels.add(2, node)
            channels.send_stop_replica(2, stop())
            await channels.events.at_least(1)
            assert len(node.received_requests()) >= 2
            await channels.close()

    in_loop(scenario)


def test_a_broker_that_is_down_gets_all_when_it_is_back_and_delays_nobody() -> None:
    async def scenario() -> None:
        dead, silent = ScriptedNode(fine), ScriptedNode(lambda r, v: SILENCE)
        await dead.start()
        await dead.stop()
        await silent.start()
        async with ScriptedNode(fine) as live:
            channels = Channels()
            for broker_id, node in ((2, dead), (3, silent), (4, live)):
                channels.add(broker_id, node)
            for epoch in range(1, 6):
                for broker_id in (2, 3, 4):
                    channels.send_stop_replica(broker_id, stop(epoch))
            events = await channels.events.at_least(5)
            assert [(e.broker_id, e.command.controller_epoch) for e in events] == [
                (4, epoch) for epoch in range(1, 6)
            ]
            await dead.start()
            events = await channels.events.at_least(10)
            assert {e.broker_id for e in events[5:]} == {2}
            assert keys_and_epochs(dead) == [(ApiKey.STOP_REPLICA, n) for n in range(1, 6)]
            assert len(silent.received_requests()) == 1
            await channels.close()
        await dead.stop()
        await silent.stop()

    in_loop(scenario)


def test_a_removed_broker_is_sent_nothing_more_and_its_late_answer_is_no_event() -> None:
    async def scenario() -> None:
        release = asyncio.Event()

        async def when_released(request: Any) -> Any:
            await release.wait()
            return fine(request)

        async with ScriptedNode(lambda r, v: when_released(r)) as node:
            channels = Channels()
            channels.add(2, node)
            channels.send_stop_replica(2, stop(1))
            channels.send_stop_replica(2, stop(2))
            await node.requests.at_least(1)
            channels.remove_broker(2)
            channels.send_stop_replica(2, stop(3))
            release.set()
            channels.add(2, node)
            channels.send_stop_replica(2, stop(4))
            [event] = await channels.events.at_least(1)
            assert event.command == stop(4)
            assert keys_and_epochs(node) == [(ApiKey.STOP_REPLICA, n) for n in (1, 4)]
            await channels.close()

    in_loop(scenario)


def test_a_bounced_broker_is_sent_to_where_its_next_life_listens() -> None:
    async def scenario() -> None:
        old = ScriptedNode(lambda r, v: SILENCE)
        await old.start()
        async with ScriptedNode(fine) as new:
            channels = Channels()
            channels.add(2, old, epoch=7)
            channels.send_stop_replica(2, stop(1))
            await old.requests.at_least(1)
            channels.add(2, new, epoch=8)
            channels.send_stop_replica(2, stop(2))
            [event] = await channels.events.at_least(1)
            assert (event.command, len(new.received_requests())) == (stop(2), 1)
            await channels.close()
        await old.stop()

    in_loop(scenario)


def test_the_own_broker_is_told_directly() -> None:
    async def scenario() -> None:
        channels = Channels()
        channels.add_broker(BrokerInfo(1, ()), 7)
        commands: list[Command] = [lead(), metadata(), stop()]
        channels.send_leader_and_isr(1, lead())
        channels.send_update_metadata(1, metadata())
        channels.send_stop_replica(1, stop())
        result = CommandResult(partition_errors={T0: ErrorCode.NONE})
        assert await channels.events.at_least(2) == [
            LeaderAndIsrResponse(1, lead().broker_epoch, result),
            StopReplicaResponse(1, stop(), result),
        ]
        assert channels.own.commands == commands
        await channels.close()

    in_loop(scenario)


def test_after_a_fault_that_nobody_expected_the_same_command_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scenario() -> None:
        channels = Channels()
        plain, faults = channels.own.apply, [ZeroDivisionError()]

        async def fails_once(command: Command) -> CommandResult:
            if faults:
                raise faults.pop()
            return await plain(command)

        monkeypatch.setattr(channels.own, "apply", fails_once)
        channels.add_broker(BrokerInfo(1, ()), 7)
        channels.send_leader_and_isr(1, lead())
        channels.send_stop_replica(1, stop())
        await channels.events.at_least(2)
        assert channels.own.commands == [lead(), stop()]
        await channels.close()

    in_loop(scenario)


def test_a_broker_without_the_inter_broker_listener_is_not_sent_to() -> None:
    async def scenario() -> None:
        channels = Channels()
        channels.add_broker(BrokerInfo(2, (Endpoint("CLIENT", "h", 1),)), 7)
        channels.send_stop_replica(2, stop())
        channels.remove_broker(2)
        await channels.close()
        assert channels.events.items == []

    in_loop(scenario)


def test_brokers_that_are_told_the_same_differ_in_their_epoch_only() -> None:
    rows = [UpdateMetadataPartition("t", TOPIC_ID, 0, partition_state().state, (1, 2))]
    live = [BrokerInfo(2, (Endpoint(LISTENER, "h", 1),))]
    other = [BrokerInfo(3, (Endpoint(LISTENER, "h", 1),))]

    async def scenario() -> None:
        async with ScriptedNode(fine) as first, ScriptedNode(fine) as second:
            channels = Channels()
            channels.add(2, first)
            channels.add(3, second)
            channels.send_update_metadata(2, UpdateMetadataCommand(1, 5, 22, rows, live))
            channels.send_update_metadata(3, UpdateMetadataCommand(1, 5, 33, rows, live))
            channels.send_update_metadata(3, UpdateMetadataCommand(1, 5, 33, rows, other))
            channels.send_update_metadata(3, UpdateMetadataCommand(1, 5, 33, [], other))
            await first.requests.at_least(1)
            await second.requests.at_least(3)
            [told_first], [told_second, told_others, told_none] = (
                first.received_requests(),
                second.received_requests(),
            )
            assert (told_first.broker_epoch, told_second.broker_epoch) == (22, 33)
            assert told_first.topic_states == told_second.topic_states
            assert told_first.topic_states[0].partition_states[0].replicas == [1, 2]
            lives = [r.live_brokers[0].id for r in (told_first, told_second, told_others)]
            assert (lives, told_none.topic_states) == ([2, 2, 3], [])
            await channels.close()

    in_loop(scenario)
