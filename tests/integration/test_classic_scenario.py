"""The classic scenario of Kafka's replication: eight brokers, some of which stop and come back.

Elections and the reassignment are asked for once through the API and once through the znodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import confluent_kafka
import pytest
from kazoo.client import KazooClient

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.harness.processes import broker_group
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

IDS = range(8)
PARTITIONS = range(8)
ASSIGNMENT = {p: [p, (p + 1) % 8, (p + 2) % 8] for p in PARTITIONS}
TARGET = {p: [4 + (p + i) % 4 for i in range(3)] for p in PARTITIONS}
RECORDS = 400

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "100",
    "log.cleaner.enable": "false",
    "replica.fetch.backoff.ms": "100",
    "zookeeper.session.timeout.ms": "5000",
}

ALL_RUN = """\
Partition: 0 Leader: 0 Replicas: 0,1,2 Isr: 0,1,2
Partition: 1 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3
Partition: 2 Leader: 2 Replicas: 2,3,4 Isr: 2,3,4
Partition: 3 Leader: 3 Replicas: 3,4,5 Isr: 3,4,5
Partition: 4 Leader: 4 Replicas: 4,5,6 Isr: 4,5,6
Partition: 5 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 6 Leader: 6 Replicas: 6,7,0 Isr: 6,7,0
Partition: 7 Leader: 7 Replicas: 7,0,1 Isr: 7,0,1
"""

WITHOUT_1_2_4 = """\
Partition: 0 Leader: 0 Replicas: 0,1,2 Isr: 0
Partition: 1 Leader: 3 Replicas: 1,2,3 Isr: 3
Partition: 2 Leader: 3 Replicas: 2,3,4 Isr: 3
Partition: 3 Leader: 3 Replicas: 3,4,5 Isr: 3,5
Partition: 4 Leader: 5 Replicas: 4,5,6 Isr: 5,6
Partition: 5 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 6 Leader: 6 Replicas: 6,7,0 Isr: 6,7,0
Partition: 7 Leader: 7 Replicas: 7,0,1 Isr: 7,0
"""

WITH_1_AGAIN = """\
Partition: 0 Leader: 0 Replicas: 0,1,2 Isr: 0,1
Partition: 1 Leader: 3 Replicas: 1,2,3 Isr: 1,3
Partition: 2 Leader: 3 Replicas: 2,3,4 Isr: 3
Partition: 3 Leader: 3 Replicas: 3,4,5 Isr: 3,5
Partition: 4 Leader: 5 Replicas: 4,5,6 Isr: 5,6
Partition: 5 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 6 Leader: 6 Replicas: 6,7,0 Isr: 6,7,0
Partition: 7 Leader: 7 Replicas: 7,0,1 Isr: 7,0,1
"""

AFTER_AN_ELECTION = WITH_1_AGAIN.replace("Partition: 1 Leader: 3", "Partition: 1 Leader: 1")

WITH_2_AND_4_AGAIN = """\
Partition: 0 Leader: 0 Replicas: 0,1,2 Isr: 0,1,2
Partition: 1 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3
Partition: 2 Leader: 3 Replicas: 2,3,4 Isr: 2,3,4
Partition: 3 Leader: 3 Replicas: 3,4,5 Isr: 3,4,5
Partition: 4 Leader: 5 Replicas: 4,5,6 Isr: 4,5,6
Partition: 5 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 6 Leader: 6 Replicas: 6,7,0 Isr: 6,7,0
Partition: 7 Leader: 7 Replicas: 7,0,1 Isr: 7,0,1
"""

# A leader that is in the target stays; else the first of the target in sync leads.
REASSIGNED = """\
Partition: 0 Leader: 4 Replicas: 4,5,6 Isr: 4,5,6
Partition: 1 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 2 Leader: 6 Replicas: 6,7,4 Isr: 6,7,4
Partition: 3 Leader: 7 Replicas: 7,4,5 Isr: 7,4,5
Partition: 4 Leader: 4 Replicas: 4,5,6 Isr: 4,5,6
Partition: 5 Leader: 5 Replicas: 5,6,7 Isr: 5,6,7
Partition: 6 Leader: 6 Replicas: 6,7,4 Isr: 6,7,4
Partition: 7 Leader: 7 Replicas: 7,4,5 Isr: 7,4,5
"""


class Api:
    """ElectLeaders and AlterPartitionReassignments."""

    def __init__(self, group: BrokerGroup) -> None:
        self._group = group

    def elect(self, topic: str) -> dict[int, ErrorCode]:
        rows = [TopicPartitions(topic=topic, partitions=list(PARTITIONS))]
        with Cluster(self._group.bootstrap_servers) as cluster:
            answer = cluster.controller_request(ElectLeadersRequest(topic_partitions=rows))
        [found] = answer.replica_election_results
        codes = {row.partition_id: ErrorCode(row.error_code) for row in found.partition_result}
        return {p: c for p, c in codes.items() if c is not ErrorCode.ELECTION_NOT_NEEDED}

    def reassign(self, topic: str, target: dict[int, list[int]]) -> None:
        rows = [ReassignablePartition(partition_index=p, replicas=r) for p, r in target.items()]
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=rows)]
        )
        with Cluster(self._group.bootstrap_servers) as cluster:
            answer = cluster.controller_request(request)
        assert answer.error_code == 0, answer
        assert {row.error_code for row in answer.responses[0].partitions} == {0}, answer


class Znodes:
    """`/admin/preferred_replica_election` and `/admin/reassign_partitions`, as the old tools."""

    def __init__(self, group: BrokerGroup) -> None:
        self._connect = group.zookeeper.connect()

    def elect(self, topic: str) -> dict[int, ErrorCode]:
        rows = [{"topic": topic, "partition": p} for p in PARTITIONS]
        self._ask("/admin/preferred_replica_election", rows)
        return {}

    def reassign(self, topic: str, target: dict[int, list[int]]) -> None:
        rows = [{"topic": topic, "partition": p, "replicas": r} for p, r in target.items()]
        self._ask("/admin/reassign_partitions", rows)

    def _ask(self, path: str, rows: list[dict[str, object]]) -> None:
        """Write the request and wait until the controller has removed it."""
        client = KazooClient(self._connect)
        client.start()
        try:
            client.create(path, json.dumps({"version": 1, "partitions": rows}).encode())
            wait_until(lambda: client.exists(path) is None, f"{path} is gone")
        finally:
            client.stop()
            client.close()


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    yield from broker_group.running(tmp_path_factory.mktemp("classic"), IDS, SETTINGS)


def produce(group: BrokerGroup, topic: str) -> None:
    """RECORDS to all partitions, each acknowledged by all in-sync replicas."""
    failures: list[object] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": group.bootstrap_servers, "acks": "all", "log_level": 0}
    )
    for number in range(RECORDS):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % len(PARTITIONS),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert (producer.flush(30), failures) == (0, [])


@pytest.mark.parametrize("way", [Api, Znodes])
def test_leaders_move_to_the_next_in_sync_and_back_to_the_preferred(
    group: BrokerGroup, way: type[Api] | type[Znodes]
) -> None:
    topic, admin = way.__name__.lower(), way(group)
    assignment = ",".join(":".join(map(str, replicas)) for replicas in ASSIGNMENT.values())
    words = ("--bootstrap-server", group.bootstrap_servers, "--topic", topic)
    assert kafkapy("topics", "--create", *words, "--replica-assignment", assignment).status == 0
    assert group.described(topic, ALL_RUN) == ALL_RUN
    produce(group, topic)

    group.stop(1, 2, 4)
    assert group.described(topic, WITHOUT_1_2_4) == WITHOUT_1_2_4
    produce(group, topic)

    group.start(1)
    assert group.described(topic, WITH_1_AGAIN) == WITH_1_AGAIN
    missing = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    told = {1: ErrorCode.NONE, 2: missing, 4: missing} if way is Api else {}
    assert admin.elect(topic) == told
    assert group.described(topic, AFTER_AN_ELECTION) == AFTER_AN_ELECTION

    group.start(2, 4)
    assert group.described(topic, WITH_2_AND_4_AGAIN) == WITH_2_AND_4_AGAIN
    assert admin.elect(topic) == ({2: ErrorCode.NONE, 4: ErrorCode.NONE} if way is Api else {})
    assert group.described(topic, ALL_RUN) == ALL_RUN

    admin.reassign(topic, TARGET)
    assert group.described(topic, REASSIGNED) == REASSIGNED
    offsets = kafkapy("get-offsets", *words[:2], "--topic", topic)
    per_partition = 2 * RECORDS // len(PARTITIONS)
    assert offsets.stdout == "".join(f"{topic}:{p}:{per_partition}\n" for p in PARTITIONS)
