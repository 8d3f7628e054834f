"""The loads of `scripts/bench --kafka` on coordinators: members that join and rebalance, commits of
many groups, share groups, transactions.
"""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from typing import Final

import confluent_kafka

from dev.bench.group_members import GROUPS, Members
from dev.bench.loads import LIMIT_S, RawClient
from kafkapy.admin.configs import Resource, incremental_alter_configs
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.client.group_offsets import commit_request
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.offset_commit import OffsetCommitResponse

Figures = dict[str, float]

_IN_FLIGHT: Final = 20


def rebalances(servers: str, topic: str, protocol: str, members: int, partitions: int) -> Figures:
    """Seconds until all members have joined, and until one more has its share."""
    _coordinate(servers, topic)
    with closing(Members(servers, GROUPS[protocol](topic, partitions))) as group:
        return {"join": group.settle(members), "rebalance": group.settle(members + 1)}


def commits(servers: str, topic: str, groups: int, seconds: float) -> Figures:
    """Commits/s of one connection for `groups` groups in turn, with _IN_FLIGHT in flight."""
    _coordinate(servers, "group-0")
    offsets = {TopicPartition(topic, 0): 1}
    requests = [
        encode_request(commit_request(f"group-{number}", offsets), 8, 0, "bench")
        for number in range(groups)
    ]
    with Cluster(servers) as cluster, closing(RawClient(servers)) as client:

        def take_answer() -> None:
            _, answer = decode_response(OffsetCommitResponse, 8, client.receive())
            code = ErrorCode(answer.topics[0].partitions[0].error_code)
            if code is not ErrorCode.NONE:
                raise ApiError(code)

        def commit(message: bytes) -> None:
            client.send(message)
            take_answer()

        for message in requests:  # until each coordinator is loaded and has the group
            cluster.retry(partial(commit, message))
        answered, sent = 0, 0
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            while sent - answered < _IN_FLIGHT:
                client.send(requests[sent % groups])
                sent += 1
            take_answer()
            answered += 1
    return {"rate": answered / passed}


def shared(servers: str, topic: str, records: int) -> Figures:
    """Records/s of one librdkafka share consumer; each poll accepts the records of the last."""
    with Cluster(servers) as cluster:
        resource = Resource(ResourceType.GROUP, topic)
        incremental_alter_configs(cluster, resource, {"share.auto.offset.reset": "earliest"}, ())
    consumer = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": servers, "group.id": topic, "log_level": 2}
    )
    consumer.subscribe([topic])
    first = count = 0
    begun = started = time.perf_counter()
    while count < records:
        assert time.perf_counter() - begun < LIMIT_S, f"{count} of {records} records"
        batch = len(consumer.poll(1.0))
        if not count:
            started, first = time.perf_counter(), batch
        count += batch
    passed = time.perf_counter() - started
    consumer.close()
    return {"rate": (count - first) / passed}


def transactions(servers: str, topic: str, seconds: float) -> Figures:
    """Transactions/s of one librdkafka producer, one record each."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": "bench", "linger.ms": 0, "log_level": 2}
    )
    producer.init_transactions(LIMIT_S)
    count = 0
    started = time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        producer.begin_transaction()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.commit_transaction(LIMIT_S)
        count += 1
    return {"rate": count / passed}


def _coordinate(servers: str, group: str) -> None:
    """Wait until the group has a coordinator; the request creates the internal topic."""
    with Cluster(servers) as cluster:
        cluster.retry(lambda: find_coordinator(cluster, group))
