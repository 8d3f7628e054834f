"""A fetch from a replica: who asks, by name or by id, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.replica_fetch import ReplicaRecords, fetch_from_replica
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

TOPIC_ID = Uuid(bytes(range(16)))
T, U = TopicPartition("t", 0), TopicPartition("t", 1)
TOPICS = {"t": {index: (1, [1, 2], [1, 2]) for index in (0, 1)}}


def answer(request: Any, port: int) -> FetchResponse:
    (topic,) = request.topics
    partitions = [
        PartitionData(
            partition_index=p.partition,
            high_watermark=p.fetch_offset + 1,
            error_code=p.partition,
            records=b"bytes" if p.partition == 0 else None,
        )
        for p in topic.partitions
    ]
    found = FetchableTopicResponse(
        topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
    )
    return FetchResponse(responses=[found])


@pytest.mark.parametrize("has_id", [False, True])
def test_one_fetch_of_all_partitions_from_the_broker_named(has_id: bool) -> None:
    ids = {"t": TOPIC_ID} if has_id else None
    script = {
        ApiKey.METADATA: metadata(TOPICS, brokers={1: 9092, 2: 9093}, topic_ids=ids),
        ApiKey.FETCH: answer,
    }
    scripted = ScriptedCluster(script)
    cluster = Cluster("b:9092", connector=scripted.connect)
    found = fetch_from_replica(cluster, 2, {T: 5, U: 7}, partition_bytes=100, max_wait_ms=30)
    assert found == {
        T: ReplicaRecords(ErrorCode.NONE, 6, memoryview(b"bytes")),
        U: ReplicaRecords(ErrorCode.OFFSET_OUT_OF_RANGE, 8, memoryview(b"")),
    }
    port, request, version = scripted.requests[-1]
    assert (port, request.max_wait_ms, request.min_bytes) == (9093, 30, 1)
    assert [p.partition_max_bytes for p in request.topics[0].partitions] == [100, 100]
    asker = request.replica_state.replica_id if version >= 15 else request.replica_id
    assert (asker, version <= 12) == (-2, not has_id)


def test_an_error_of_the_whole_answer() -> None:
    refusal = FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(TOPICS), ApiKey.FETCH: refusal})
    cluster = Cluster("b:9092", connector=scripted.connect)
    with pytest.raises(ApiError, match="Broker 1 refused the fetch") as caught:
        fetch_from_replica(cluster, 1, {T: 0}, partition_bytes=1, max_wait_ms=0)
    assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
