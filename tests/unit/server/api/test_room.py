"""The memory that large requests may take: those of real clusters of any size are served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.protocol.compile import decoder
from kafkapy.protocol.headers import decode_request_header, encode_request
from kafkapy.protocol.messages import (
    alter_partition,
    delete_records,
    fetch,
    leader_and_isr,
    list_offsets,
    offset_commit,
    offset_for_leader_epoch,
    stop_replica,
    update_metadata,
)
from kafkapy.protocol.schema import Message, Struct
from kafkapy.server.api.dispatcher import ROOM_PER_BYTE

ROWS = 2_000
BROKERS = ([1], [1, 2, 3], [1, 2, 3, 4, 5])


def by_replicas(make: Callable[[int, list[int]], Struct]) -> list[list[Struct]]:
    return [[make(index, brokers) for index in range(ROWS)] for brokers in BROKERS]


def large_requests() -> list[tuple[Message, int]]:
    """Requests about many partitions of one topic, each with its version."""
    states = by_replicas(
        lambda index, brokers: update_metadata.UpdateMetadataPartitionState(
            partition_index=index, isr=brokers, replicas=brokers, offline_replicas=[]
        )
    )
    leaders = by_replicas(
        lambda index, brokers: leader_and_isr.LeaderAndIsrPartitionState(
            partition_index=index, isr=brokers, replicas=brokers
        )
    )
    topic = update_metadata.UpdateMetadataTopicState
    led = leader_and_isr.LeaderAndIsrTopicState
    in_sync = alter_partition.BrokerState
    rows: Any = range(ROWS)
    return [
        *(
            (update_metadata.UpdateMetadataRequest(
                topic_states=[topic(topic_name="t", partition_states=each)]  # type: ignore[list-item]
            ), 8)
            for each in states
        ),
        *(
            (leader_and_isr.LeaderAndIsrRequest(
                topic_states=[led(topic_name="t", partition_states=each)]  # type: ignore[list-item]
            ), 7)
            for each in leaders
        ),
        (stop_replica.StopReplicaRequest(topic_states=[stop_replica.StopReplicaTopicState(
            topic_name="t",
            partition_states=[stop_replica.StopReplicaPartitionState() for _ in rows],
        )]), 4),
        (offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[offset_for_leader_epoch.OffsetForLeaderTopic(
                topic="t",
                partitions=[offset_for_leader_epoch.OffsetForLeaderPartition() for _ in rows],
            )]
        ), 4),
        *(
            (alter_partition.AlterPartitionRequest(topics=[alter_partition.TopicData(partitions=[
                alter_partition.PartitionData(
                    new_isr_with_epochs=[in_sync(broker_id=each) for each in brokers]
                )
                for _ in rows
            ])]), 3)
            for brokers in BROKERS
        ),
        (list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(
            name="t", partitions=[list_offsets.ListOffsetsPartition() for _ in rows]
        )]), 9),
        (fetch.FetchRequest(topics=[fetch.FetchTopic(
            topic="t", partitions=[fetch.FetchPartition() for _ in rows]
        )]), 17),
        (delete_records.DeleteRecordsRequest(topics=[delete_records.DeleteRecordsTopic(
            name="t", partitions=[delete_records.DeleteRecordsPartition() for _ in rows]
        )]), 2),
        (offset_commit.OffsetCommitRequest(topics=[offset_commit.OffsetCommitRequestTopic(
            name="t", partitions=[offset_commit.OffsetCommitRequestPartition() for _ in rows]
        )]), 9),
    ]  # fmt: skip


def named(value: Message | int) -> str:
    return f"v{value}" if isinstance(value, int) else type(value).__name__


@pytest.mark.parametrize(("request_", "version"), large_requests(), ids=named)
def test_rows_of_real_requests_fit_by_their_bytes(request_: Message, version: int) -> None:
    """A controller sends all partitions in one request, and again until it is answered: one that is
    refused is refused for good."""
    frame = memoryview(encode_request(request_, version, 1, "1"))[4:]
    header, body = decode_request_header(frame)
    assert header.api_key == request_.API_KEY
    decoder(type(request_), version)(frame, body, len(frame) * ROOM_PER_BYTE)
