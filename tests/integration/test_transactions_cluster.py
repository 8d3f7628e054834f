"""Exactly once in a cluster whose brokers die: coordinators, leaders of the data, and of offsets.

With Apache Kafka's jars one of the brokers is Apache Kafka's: each kind coordinates, verifies and
marks for the other. Without them the end of the run says that this was not checked.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, partition_for_key
from tests.harness.faults.exactly_once import Copier, fill, read
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until

TOTAL = 1200
STATE_PARTITIONS = 4
COORDINATORS = (2, 1, 3)
SETTINGS = {
    "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "min.insync.replicas": "2",
}


def lead(cluster: FaultCluster, broker_id: int) -> None:
    """Make a broker the coordinator of the copier's transactions."""
    index = partition_for_key("copy-in", STATE_PARTITIONS)
    others = [other for other in cluster.brokers if other != broker_id]
    target = {index: [broker_id, *others]}
    cluster.reassign(TRANSACTION_STATE_TOPIC, target)
    wait_until(lambda: not cluster.not_reassigned(TRANSACTION_STATE_TOPIC, target), "reassigned")
    cluster.elect_preferred(TRANSACTION_STATE_TOPIC, STATE_PARTITIONS)
    wait_until(
        lambda: cluster.leader(TRANSACTION_STATE_TOPIC, index) == broker_id,
        f"coordinator {broker_id}",
    )


def copies_once(directory: Path, apache: Collection[int] = ()) -> None:
    with FaultCluster(directory, 3, SETTINGS, apache=apache) as cluster:
        servers = cluster.bootstrap_servers
        for topic in ("in", "out"):
            create_topic(servers, topic, 3, replication_factor=3)
        fill(servers, "in", TOTAL)
        with Copier(servers, "in", "out", TOTAL) as copier:
            for step, coordinator in enumerate(COORDINATORS, 1):
                copier.wait_for(step * TOTAL // 5)
                lead(cluster, coordinator)
                copier.wait_for(step * TOTAL // 5 + 40)
                cluster.brokers[coordinator].kill()
                copier.wait_for(step * TOTAL // 5 + 80)
                cluster.start_supervised(cluster.brokers[coordinator])
                cluster.wait_for_full_isr()
        assert sorted(map(int, read(servers, "out"))) == list(range(TOTAL))
        cluster.stop_brokers()


def test_each_record_is_copied_once_though_coordinators_are_killed(tmp_path: Path) -> None:
    copies_once(tmp_path)


if apache_kafka.installed():

    def test_each_record_is_copied_once_in_a_cluster_of_both_kinds(tmp_path: Path) -> None:
        copies_once(tmp_path, apache=(2,))
