"""Readers continue after a quota delay; a client that ends by an exception is a fault."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import fetch, metadata, produce
from kafkapy.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.faults.anomalies import Mode
from tests.simulation.clients import Producer, Reader
from tests.simulation.events import SECOND_US
from tests.simulation.history import SimHistory
from tests.simulation.world import World


def answer(throttle_time_ms: int, *records: bytes) -> fetch.FetchResponse:
    """A fetch response with a row for each of the records, without rows if none are given."""
    rows = [fetch.PartitionData(partition_index=0, records=each) for each in records]
    topics = [fetch.FetchableTopicResponse(topic="orders", partitions=rows)] if rows else []
    return fetch.FetchResponse(throttle_time_ms=throttle_time_ms, responses=topics)


class Scripted(Reader):
    """Reads one record from one broker, which returns these responses to fetches in order."""

    def __init__(self, world: World, *answers: fetch.FetchResponse) -> None:
        self.answers = list(answers)
        super().__init__(world, SimHistory(world), "r1", "orders", 0, Mode.SUBSCRIBE, 1)

    def node(self, broker_id: int) -> Any:
        return self

    def any_broker(self) -> int:
        return 1

    async def request(self, request: Any, version: int) -> Any:
        if isinstance(request, fetch.FetchRequest):
            return self.answers.pop(0)
        row = metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)
        topic = metadata.MetadataResponseTopic(name="orders", partitions=[row])
        return metadata.MetadataResponse(topics=[topic])


RECORD = answer(0, build_batch([RecordData(None, b"7", 0)]))


@pytest.mark.parametrize("stops", [0, 2])
def test_a_reader_beyond_its_quota_reads_on(stops: int) -> None:
    world = World(0)
    reader = Scripted(world, *[answer(300)] * stops, RECORD)
    world.events.run_until(5 * SECOND_US)
    assert reader.is_done
    assert reader.position == 1
    assert world.counts["fetches beyond a quota"] == stops
    assert not world.faults


class FormerLeader(Producer):
    """Broker 3 acknowledges the first batch in leader epoch 3; then broker 2, which led in epoch 2,
    finds a gap before the next one."""

    def __init__(self, world: World, history: SimHistory, *, ignores_known_epochs: bool) -> None:
        history.epoch_led = lambda broker_id, at: broker_id
        super().__init__(world, history, 1, "orders", 0, -1)
        self.ignores_known_epochs = ignores_known_epochs
        self.leaders = [3, 2]

    async def leader(self, topic: str, partition: int) -> int:
        return self.leaders.pop(0) if self.leaders else 3

    def any_broker(self) -> int:
        return 1

    def node(self, broker_id: int) -> Any:
        error = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if broker_id == 2 else ErrorCode.NONE
        row = produce.PartitionProduceResponse(error_code=error, base_offset=0)
        topic = produce.TopicProduceResponse(partition_responses=[row])
        produced = produce.ProduceResponse(responses=[topic])

        class Node:
            async def request(self, request: Any, version: int) -> Any:
                asks_id = isinstance(request, InitProducerIdRequest)
                return InitProducerIdResponse(producer_id=1000) if asks_id else produced

        return Node()


@pytest.mark.parametrize(
    ("ignores_known_epochs", "is_connected", "is_excused"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_a_gap_at_a_former_leader_is_excused_while_its_session_lives(
    ignores_known_epochs: bool, is_connected: bool, is_excused: bool
) -> None:
    """Only gaps of producers that ignore known leader epochs are excused. See decision 60."""
    world, asked = World(0), []
    history = SimHistory(world)
    world.ensemble.was_connected_at = lambda *at: asked.append(at) or is_connected
    FormerLeader(world, history, ignores_known_epochs=ignores_known_epochs)
    world.events.run_until(SECOND_US)
    assert world.counts["gaps at former leaders with a ZooKeeper session"] == is_excused
    assert (history.unexplained() == []) is is_excused
    assert set(asked) <= {("/brokers/ids/2", "/brokers/topics/orders/partitions/0/state")}


def test_a_client_that_ends_by_an_exception_is_a_fault() -> None:
    """A response without a row is a fault unless a quota explains it."""
    world = World(0)
    reader = Scripted(world, answer(0), RECORD)
    world.events.run_until(5 * SECOND_US)
    assert not reader.is_done
    [fault] = world.faults
    assert fault.startswith("r1: a client ended")
