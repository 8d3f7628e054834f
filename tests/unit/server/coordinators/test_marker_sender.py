"""Decisions to the leaders of their partitions, one request a broker and turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.server.coordinators.marker_sender import MarkerSender
from kafkapy.server.interbroker.node_clients import NodeClients
from tests.harness.cores.server_parts import Parts
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    RecordedItems,
    ScriptedNode,
    in_loop,
)
from tests.harness.storage.partitions import TOPIC_ID, partition_state

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


def decision(producer_id: int, *partitions: TopicPartition) -> Markers:
    return Markers("x", Producer(producer_id, 0), True, 3, partitions)


def written(request: WriteTxnMarkersRequest, version: int) -> WriteTxnMarkersResponse:
    """Each partition has its marker, but for those of producer 9."""
    assert version == 1, "the version of Kafka's IBP 3.9"
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
                                if marker.producer_id == 9
                                else 0,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


class Sending:
    """Broker 1's sender; broker 2, which leads `t-0`, is a scripted node."""

    def __init__(self, parts: Parts, port: int, leaders: Mapping[int, int]) -> None:
        metadata = MetadataCache()
        rows = [
            UpdateMetadataPartition(
                "t", TOPIC_ID, index, partition_state(leader=leader).state, (1, 2)
            )
            for index, leader in leaders.items()
        ]
        brokers = [BrokerInfo(2, (Endpoint("I", "127.0.0.1", port),))]
        metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, brokers))
        self.told = RecordedItems()
        self.nodes = NodeClients(metadata, "I", "1", request_timeout_ms=LIMIT_MS)
        call_later = asyncio.get_running_loop().call_later
        writer = parts.markers
        self.is_metadata_complete = True
        self.sender = MarkerSender(
            1, metadata, writer, self.nodes, call_later, lambda: self.is_metadata_complete
        )

    def send(self, markers: Markers) -> None:
        self.sender.send(markers, self._marked)

    def _marked(self, markers: Markers, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        self.told.add((markers.producer.producer_id, dict(errors)))


def test_what_is_decided_in_a_turn_goes_to_a_broker_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedNode(written) as node:
            sending = Sending(Parts(tmp_path), node.port, {0: 2, 1: 2})
            sending.send(decision(7, T0, T1))
            sending.send(decision(9, T0))
            answers = await sending.told.at_least(2)
            assert answers == [
                (7, {T0: ErrorCode.NONE, T1: ErrorCode.NONE}),
                (9, {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}),
            ]
            ((_, request),) = node.requests.items
            assert [(m.producer_id, m.coordinator_epoch) for m in request.markers] == [
                (7, 3),
                (9, 3),
            ]
            sending.sender.close()

    in_loop(scenario)


def test_a_broker_that_does_not_answer_is_to_be_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda request, version: DISCONNECT) as node:
            sending = Sending(Parts(tmp_path), node.port, {0: 2})
            sending.send(decision(7, T0))
            assert await sending.told.at_least(1) == [(7, {T0: ErrorCode.NETWORK_EXCEPTION})]
            sending.sender.close()

    in_loop(scenario)


def test_partitions_without_leader_wait_and_deleted_ones_do_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        sending = Sending(Parts(tmp_path), 1, {0: -1, 1: 3})
        sending.send(decision(7, T0, T1, GONE))
        errors: dict[Any, ErrorCode] = {}
        for _, some in await sending.told.at_least(2):
            errors |= some
        assert errors == {
            T0: ErrorCode.LEADER_NOT_AVAILABLE,
            T1: ErrorCode.NETWORK_EXCEPTION,
            GONE: ErrorCode.NONE,
        }

    in_loop(scenario)


def test_a_broker_that_has_just_started_takes_no_partition_for_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        sending = Sending(Parts(tmp_path), 1, {})
        sending.is_metadata_complete = False
        sending.send(decision(7, T0))
        assert await sending.told.at_least(1) == [(7, {T0: ErrorCode.LEADER_NOT_AVAILABLE})]

    in_loop(scenario)


def test_its_own_partitions_need_no_connection(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.lead()

    async def scenario() -> None:
        sending = Sending(parts, 1, {0: 1})
        sending.send(decision(7, T0))
        assert await sending.told.at_least(1) == [(7, {T0: ErrorCode.NONE})]

    in_loop(scenario)
    assert parts.replicas.get("t", 0).log.log_end_offset == 1
