"""Fetch (key 1): batches from an offset on, for consumers and followers alike.

v3 max bytes (KIP-74); v4 isolation level (KIP-98); v5 log start offset (KIP-107); v7 sessions
(KIP-227); v9 leader epoch (KIP-320); v11 rack (KIP-392); v12 diverging epoch (KIP-595); v13 topic
ids (KIP-516); v15 replica state (KIP-903); v16 node endpoints (KIP-951); v17 directory id
(KIP-853); v18 the follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.primitives import Records
from kafkapy.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    field,
    struct,
)


class ReplicaState(Struct):
    replica_id: int = field(INT32, default=-1)
    replica_epoch: int = field(INT64, default=-1)


class FetchPartition(Struct):
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, "9+", default=-1)
    fetch_offset: int = field(INT64)
    last_fetched_epoch: int = field(INT32, "12+", default=-1)
    log_start_offset: int = field(INT64, "5+", default=-1)
    partition_max_bytes: int = field(INT32)
    replica_directory_id: Uuid = field(UUID, "17+", tag=0)
    high_watermark: int = field(INT64, "18+", tag=1, default=2**63 - 1)


class FetchTopic(Struct):
    topic: str = field(STRING, "0-12")
    topic_id: Uuid = field(UUID, "13+")
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    topic: str = field(STRING, "7-12")
    topic_id: Uuid = field(UUID, "13+")
    partitions: list[int] = array(INT32)


class FetchRequest(Message, api=ApiKey.FETCH):
    cluster_id: str | None = field(STRING, "12+", nullable=True, tag=0)
    replica_id: int = field(INT32, "0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, "3+", default=2147483647)
    isolation_level: int = field(INT8, "4+")
    session_id: int = field(INT32, "7+")
    session_epoch: int = field(INT32, "7+", default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = field(STRING, "11+")


class EpochEndOffset(Struct):
    epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


class SnapshotId(Struct):
    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field(INT64)
    first_offset: int = field(INT64)


class PartitionData(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, "4+", default=-1)
    log_start_offset: int = field(INT64, "5+", default=-1)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable=True
    )
    preferred_read_replica: int = field(INT32, "11+", default=-1)
    records: Records | None = field(RECORDS, nullable=True)


class FetchableTopicResponse(Struct):
    topic: str = field(STRING, "0-12")
    topic_id: Uuid = field(UUID, "13+")
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=True)


class FetchResponse(Message, api=ApiKey.FETCH):
    throttle_time_ms: int = field(INT32, "1+")
    error_code: int = field(INT16, "7+")
    session_id: int = field(INT32, "7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)
