"""Transactions of version 2 (KIP-890) on a cluster that fails: Apache Kafka 4's copier.

librdkafka supports only version 1.
"""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.harness.faults.anomalies import Poll
from tests.harness.faults.chaos_workload import ClientThread
from tests.harness.processes import apache_kafka

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
RELEASE = apache_kafka.KAFKA_4


def command(servers: str, source: str, target: str, group: str, transactional_id: str) -> list[str]:
    """Copy the present records of a topic in a process, and abort some transactions."""
    return apache_kafka.java_command(
        COPIER,
        *("--broker-list", servers, "--transactional-id", transactional_id),
        *("--input-topic", source, "--output-topic", target, "--consumer-group", group),
        *(
            "--input-partition",
            "-1",
            "--group-mode",
            "--use-group-metadata",
            "--enable-random-aborts",
        ),
        *("--transaction-size", "500", "--transaction-timeout", "10000"),
        release=RELEASE,
    )


class JavaCopier(ClientThread):
    """A member of the group of copiers, in one process after the other.

    Some processes are killed during a transaction; the next process fences it.
    """

    def __init__(self, argv: Sequence[str], name: str, seed: int, output: Path) -> None:
        super().__init__(name)
        self.kill_count = 0
        self.exit_statuses: list[int] = []
        self._argv = argv
        self._chance = random.Random(seed)
        self._output = output
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            with self._output.open("ab") as sink:
                process = subprocess.Popen(
                    self._argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
                )
            try:
                self._watch(process, self._chance.uniform(5, 40))
            finally:
                process.kill()
                process.wait()
            self._stopping.wait(self._chance.uniform(1, 5))

    def _watch(self, process: subprocess.Popen[bytes], run_s: float) -> None:
        """Wait until the process ends by itself, or for `run_s`."""
        for _ in range(int(run_s / 0.2)):
            if process.poll() is not None:
                self.exit_statuses.append(process.returncode)
                return
            if self._stopping.wait(0.2):
                return
        self.kill_count += 1


def differences(source: Iterable[Poll], copy: Iterable[Poll]) -> list[str]:
    """Partitions of a topic whose copy does not have the same values in the same order.

    The polls are those of one assigned reader of each.
    """
    found = []
    originals, copies = _values(source), _values(copy)
    for partition in sorted(originals.keys() | copies.keys()):
        wanted, made = originals[partition], copies[partition]
        if wanted != made:
            pairs = enumerate(zip(wanted, made, strict=False))
            at = next((n for n, (value, copied) in pairs if value != copied), "the end of one")
            found.append(
                f"partition {partition}: {len(made)} copies of {len(wanted)} records; the first"
                f" difference is at {at}"
            )
    return found


def _values(polls: Iterable[Poll]) -> dict[int, list[int]]:
    """Values by partition, in the order of a reader."""
    found: dict[int, list[int]] = defaultdict(list)
    for poll in polls:
        found[poll.partition].extend(poll.values)
    return found
