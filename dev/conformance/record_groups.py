"""The answers of Apache Kafka 4 to bad input of groups: `scripts/conformance --record-groups`.

One node is started from Apache Kafka's jars. What it says goes to tests/data/groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.protocol.schema import Message
from tests.harness.processes import apache_kafka
from tests.harness.processes.topics import create_topic
from tests.harness.protocol import group_refusals

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": "0",  # or the second epoch comes later
    "share.coordinator.state.topic.replication.factor": "1",
}


def record(say: Callable[[str], None]) -> None:
    """Ask, and write the file."""
    with (
        tempfile.TemporaryDirectory(prefix="kafkapy-record-") as scratch,
        apache_kafka.ApacheBroker(
            Path(scratch) / "logs", SETTINGS, release=apache_kafka.KAFKA_4
        ) as node,
        Cluster(node.bootstrap_servers) as cluster,
    ):
        for topic in group_refusals.TOPICS:
            create_topic(node.bootstrap_servers, topic)
        cluster.retrying(lambda: find_coordinator(cluster, "any"))  # creates __consumer_offsets

        def ask(version: int, message: Message) -> Message:
            answer: Message = cluster.request(message, min_version=version, max_version=version)
            return answer

        found = group_refusals.answers(ask)
    group_refusals.write(found)
    say(f"written: {group_refusals.DATA}: {len(found)} cases of {apache_kafka.KAFKA_4.version}")
