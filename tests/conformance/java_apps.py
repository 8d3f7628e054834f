"""Apache Kafka's Java programs as processes, and a replicated cluster for them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import ServerProcess

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "500",
}
RUN_LIMIT_S = 600.0


@dataclass
class Finding:
    """A program that was run: what was done to it and its brokers, and what was found."""

    program: str
    brokers: str
    faults: str
    found: str


class JavaApp(ServerProcess):
    """A program that is started and later killed or stopped; it listens to nobody that asks."""

    def __init__(
        self,
        directory: Path,
        name: str,
        main_class: str,
        *args: str,
        release: apache_kafka.Release = apache_kafka.KAFKA_3_APPS,
    ) -> None:
        command = apache_kafka.java_command(main_class, *args, heap_mb=512, release=release)
        super().__init__(command, 0, directory / f"{name}.out", name)

    def run(self, limit_s: float = RUN_LIMIT_S) -> str:
        """Run it to its end, which must be a good one; what it printed.

        Raises:
            AssertionError: it ended with another status, or not in time.
        """
        self.launch()
        try:
            status = self.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            status = -1
        assert status == 0, self._complaint(f"ended with {status}")
        return self.output_text()


def replicated_cluster(directory: Path, apache: tuple[int, ...] = ()) -> FaultCluster:
    """Three brokers, every topic on all; those of the ids `apache` are Apache Kafka's."""
    return FaultCluster(directory, 3, REPLICATED, apache=apache)


def properties(directory: Path, name: str, **settings: str) -> str:
    """The path of a properties file; `_` in a name stands for a dot."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return str(apache_kafka.write_properties(directory / f"{name}.properties", dotted))
