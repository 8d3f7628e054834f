"""Replaces brokers under load with brokers of another commit, and of Apache Kafka.

Each broker in turn is stopped or killed, and a broker of the other kind starts on its log
directory; then all are replaced back.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dev.report import ROOT
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.faults import table
from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Anomalies, Workload, create_topic
from tests.harness.faults.fault_cluster import FaultCluster, Kind, kafkapy_broker
from tests.harness.faults.table import TableWriter
from tests.harness.faults.transaction_workload import COPIES, SETTINGS, TransactionWorkload
from tests.harness.processes import apache_kafka
from tests.harness.processes.apache_kafka import ApacheBroker
from tests.harness.processes.broker_process import ServerProcess

TABLE = "chaos-table"
TABLE_PARTITIONS = 2
PROGRESS = 100
PROGRESS_LIMIT_S = 120.0
COMPACTING = {
    **SETTINGS,
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "offsets.topic.segment.bytes": "50000",
    "transaction.state.log.segment.bytes": "50000",
}


class CompactedWorkload(TransactionWorkload):
    """The transactional workload and a compacted topic. Bytes of compacted logs are not compared:
    they differ."""

    def _start(self, rate: float) -> None:
        super()._start(rate)
        config = {"cleanup.policy": "compact", "segment.bytes": "50000"}
        create_topic(self.cluster, TABLE, TABLE_PARTITIONS, 3, 2, config)
        self._table = TableWriter(self.cluster.bootstrap_servers, TABLE)
        self.writers.append(self._table)

    def _compared_partitions(self) -> dict[TopicPartition, list[int]]:
        return {
            at: ids
            for at, ids in super()._compared_partitions().items()
            if at.topic in (TOPIC, COPIES)
        }

    def _judge(self) -> tuple[Anomalies, Anomalies]:
        anomalies, allowed = super()._judge()
        anomalies["lost-row"] = []
        anomalies["not-compacted"] = []
        for broker_id, [home] in self.cluster.log_dirs.items():
            last, count = table.rows_of(home / f"{TABLE}-{p}" for p in range(TABLE_PARTITIONS))
            anomalies["lost-row"] += table.lost_rows(self._table, last, f"broker {broker_id}")
            if count > self._table.acked / 2:
                anomalies["not-compacted"].append(f"broker {broker_id} has {count} records left")
        return anomalies, allowed


def older(commit: str, directory: Path) -> Kind:
    """Brokers of another commit with today's packages. Its files are extracted into `directory`."""
    directory.mkdir()
    with subprocess.Popen(
        ["git", "-C", str(ROOT), "archive", commit, "kafkapy"], stdout=subprocess.PIPE
    ) as archive:
        subprocess.run(["tar", "-x", "-C", str(directory)], stdin=archive.stdout, check=True)
    assert archive.returncode == 0, f"no commit {commit}"

    def broker(
        home: Path, properties: Mapping[str, str], zookeeper: ServerProcess
    ) -> ServerProcess:
        made = kafkapy_broker(home, properties, zookeeper)
        made.environment = {"PYTHONPATH": str(directory)}
        return made

    return broker


def two_days_ago() -> str:
    """The last commit before two days ago; the project has no earlier version."""
    command = ["git", "-C", str(ROOT), "rev-list", "-1", "--before=2.days.ago", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()[:10]


def roll(cluster: FaultCluster, workload: Workload, other: Kind) -> Iterator[str]:
    """Exchange all brokers for the other commit and back; then each one for Apache Kafka and back,
    by kill -9."""
    for name, kind in (("the older commit", other), ("today's", kafkapy_broker)):
        for broker_id in cluster.brokers:
            yield step(cluster, workload, broker_id, kind, name, clean=broker_id % 2 == 0)
    if not apache_kafka.installed():
        yield "not exchanged with Apache Kafka, which is not installed"
        return
    for broker_id in cluster.brokers:
        for name, kind in (("Apache Kafka", ApacheBroker), ("today's", kafkapy_broker)):
            yield step(cluster, workload, broker_id, kind, name, clean=False)


def step(
    cluster: FaultCluster,
    workload: Workload,
    broker_id: int,
    kind: Kind,
    name: str,
    *,
    clean: bool,
) -> str:
    """Exchange one broker; wait until it leads again and records are acknowledged."""
    cluster.replace_broker(broker_id, kind, clean=clean)
    cluster.elect_preferred(TOPIC, PARTITIONS)
    workload.wait_for_progress(PROGRESS, PROGRESS_LIMIT_S)
    how = "stopped" if clean else "killed"
    return f"{time.strftime('%H:%M:%S')} broker {broker_id} {how}, goes on as {name}"
