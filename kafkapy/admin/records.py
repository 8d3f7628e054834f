"""Deletes records from the beginning of partitions (DeleteRecords, KIP-107)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.admin.errors import api_error
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def delete_records(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    results: dict[TopicPartition, int | ApiError],
) -> None:
    """Delete the records below each offset (-1: the high watermark), and put the low watermark or
    the error of each partition into `results` as soon as it is known.

    Each leader gets a request for its partitions. If a leader has moved, it is looked up again,
    until the API timeout.
    """
    pending = dict(offsets)
    for attempt in cluster.attempts():
        for leader, partitions in _by_leader(cluster, pending, results, attempt > 0).items():
            results |= _send(cluster, leader, {tp: pending[tp] for tp in partitions})
        pending = {tp: pending[tp] for tp in pending if _is_retriable(cluster, results[tp])}
        if not pending:
            break


def _is_retriable(cluster: Cluster, result: int | ApiError) -> bool:
    return isinstance(result, ApiError) and cluster.is_moved_error(result.code)


def _by_leader(
    cluster: Cluster,
    partitions: Mapping[TopicPartition, int],
    results: dict[TopicPartition, int | ApiError],
    refresh: bool,
) -> dict[int, list[TopicPartition]]:
    """Partitions by leader. Those without a leader get an error in `results`."""
    names = list(by_topic(partitions))
    topics = cluster.metadata(names, refresh=refresh).topics if names else {}
    groups: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        topic = topics[tp.topic]
        partition = topic.partitions.get(tp.partition)
        if partition is None:
            results[tp] = api_error(topic.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif partition.leader < 0:
            results[tp] = api_error(partition.error or ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            groups.setdefault(partition.leader, []).append(tp)
    return groups


def _send(
    cluster: Cluster, leader: int, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | ApiError]:
    topics = [
        DeleteRecordsTopic(
            name=name,
            partitions=[
                DeleteRecordsPartition(
                    partition_index=index, offset=offsets[TopicPartition(name, index)]
                )
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets).items()
    ]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=cluster.request_timeout_ms)
    try:
        response = cluster.request(request, broker_id=leader)
    except ApiError as error:
        return dict.fromkeys(offsets, error)
    missing_answer = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader said nothing of it.")
    answers: dict[TopicPartition, int | ApiError] = dict.fromkeys(offsets, missing_answer)
    for topic in response.topics:
        for p in topic.partitions:
            is_refused = p.error_code != ErrorCode.NONE
            answers[TopicPartition(topic.name, p.partition_index)] = (
                api_error(p.error_code) if is_refused else p.low_watermark
            )
    return answers
