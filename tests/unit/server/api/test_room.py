"""The memory that large requests may take: those of real clusters of any size are served."""

from __future__ import annotations

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
from kafkapy.protocol.schema import Message
from kafkapy.server.api.dispatcher import ROOM_PER_BYTE

ROWS = 2_000
BROKERS = ([1], [1, 2, 3], [1, 2, 3, 4, 5])


def requests_of_brokers() -> list[tuple[Message, int]]:
    """Requests about many partitions of one topic, each with its version."""
    state = update_metadata.UpdateMetadataPartitionState
    leader = leader_and_isr.LeaderAndIsrPartitionState
    stop = stop_replica.StopReplicaPartitionState
    epoch = offset_for_leader_epoch.OffsetForLeaderPartition
    change, in_sync = alter_partition.PartitionData, alter_partition.BrokerState
    found: list[tuple[Message, int]] = []
    for ids in BROKERS:
        states = [state(isr=ids, replicas=ids, offline_replicas=[]) for _ in range(ROWS)]
        topic = update_metadata.UpdateMetadataTopicState(partition_states=states)
        found.append((update_metadata.UpdateMetadataRequest(topic_states=[topic]), 8))
        leaders = [leader(isr=ids, replicas=ids) for _ in range(ROWS)]
        led = leader_and_isr.LeaderAndIsrTopicState(partition_states=leaders)
        found.append((leader_and_isr.LeaderAndIsrRequest(topic_states=[led]), 7))
        isr = [in_sync(broker_id=each) for each in ids]
        changes = [change(new_isr_with_epochs=isr) for _ in range(ROWS)]
        data = alter_partition.TopicData(partitions=changes)
        found.append((alter_partition.AlterPartitionRequest(topics=[data]), 3))
    stopped = stop_replica.StopReplicaTopicState(partition_states=[stop()] * ROWS)
    found.append((stop_replica.StopReplicaRequest(topic_states=[stopped]), 4))
    asked = offset_for_leader_epoch.OffsetForLeaderTopic(partitions=[epoch()] * ROWS)
    found.append((offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[asked]), 4))
    return found


def requests_of_clients() -> list[tuple[Message, int]]:
    wanted = list_offsets.ListOffsetsTopic(partitions=[list_offsets.ListOffsetsPartition()] * ROWS)
    read = fetch.FetchTopic(partitions=[fetch.FetchPartition()] * ROWS)
    deleted = delete_records.DeleteRecordsTopic(
        partitions=[delete_records.DeleteRecordsPartition()] * ROWS
    )
    committed = offset_commit.OffsetCommitRequestTopic(
        partitions=[offset_commit.OffsetCommitRequestPartition()] * ROWS
    )
    return [
        (list_offsets.ListOffsetsRequest(topics=[wanted]), 9),
        (fetch.FetchRequest(topics=[read]), 17),
        (delete_records.DeleteRecordsRequest(topics=[deleted]), 2),
        (offset_commit.OffsetCommitRequest(topics=[committed]), 9),
    ]


def named(value: Message | int) -> str:
    return f"v{value}" if isinstance(value, int) else type(value).__name__


@pytest.mark.parametrize(
    ("request_", "version"), [*requests_of_brokers(), *requests_of_clients()], ids=named
)
def test_rows_of_real_requests_fit_by_their_bytes(request_: Message, version: int) -> None:
    """A controller sends all partitions in one request, and again until it is answered: one that is
    refused is refused for good."""
    frame = memoryview(encode_request(request_, version, 1, "1"))[4:]
    header, body = decode_request_header(frame)
    assert header.api_key == request_.API_KEY
    decoder(type(request_), version)(frame, body, len(frame) * ROOM_PER_BYTE)
