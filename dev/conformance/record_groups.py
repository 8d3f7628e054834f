"""Apache Kafka 4's answers to invalid group requests: `scripts/conformance --record-groups`.

One node is started from Apache Kafka's jars. Its answers go to tests/data/groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import confluent_kafka

from kafkapy.admin.group_offsets import committed_offsets
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.schema import Message
from tests.harness.processes import apache_kafka
from tests.harness.processes.topics import create_topic
from tests.harness.protocol import group_refusals, share_refusals

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": "0",  # otherwise the second epoch comes later
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",  # otherwise one coordinator loads before the others
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
SHARED: Final = "shared"
SHARE_KEY_TYPE: Final = 2


def record(print_line: Callable[[str], None]) -> None:
    """Send the requests, and write the files."""
    with (
        tempfile.TemporaryDirectory(prefix="kafkapy-record-") as scratch,
        apache_kafka.ApacheBroker(
            Path(scratch) / "logs", SETTINGS, release=apache_kafka.KAFKA_4
        ) as node,
        Cluster(node.bootstrap_servers) as cluster,
    ):
        for topic in group_refusals.TOPICS:
            create_topic(node.bootstrap_servers, topic)
        committed_offsets(cluster, "any")  # creates __consumer_offsets, and waits for it

        def ask(version: int, message: Message) -> Message:
            answer: Message = cluster.request(message, min_version=version, max_version=version)
            return answer

        found = group_refusals.answers(ask)
        topic_id = _share(node.bootstrap_servers, cluster)
        found_of_shares = share_refusals.answers(ask, SHARED, topic_id)
    for file, each in ((group_refusals.DATA, found), (share_refusals.DATA, found_of_shares)):
        group_refusals.write(each, file)
        print_line(f"written: {file}: {len(each)} cases of {apache_kafka.KAFKA_4.version}")


def _share(servers: str, cluster: Cluster) -> Uuid:
    """Create and fill a topic for share groups, and wait for their coordinator. Returns the
    topic's id."""
    create_topic(servers, SHARED)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 2})
    for offset in range(share_refusals.LAST + 1):
        producer.produce(SHARED, str(offset).encode())
    assert producer.flush(60) == 0
    topic_id: Uuid = cluster.metadata([SHARED], refresh=True).topics[SHARED].topic_id
    key = f"any:{topic_id}:0"
    cluster.retry(lambda: find_coordinator(cluster, key, SHARE_KEY_TYPE))
    return topic_id
