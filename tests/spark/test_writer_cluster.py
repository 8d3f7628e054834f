"""writer in a cluster whose brokers die one after the other: each row once and in order, in one
long task and, beside it, in transactions that are tried again as Spark tries tasks again.

With Apache Kafka's jars one of the brokers is Apache Kafka's; without them the end of the run says
that this was not checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Condition
from typing import Any

import pyarrow as pa
import pytest

from kafkapy.common.errors import KafkapyError
from kafkapy.spark.sink.sink_options import parse_sink_options
from kafkapy.spark.sink.writer import write_batches, write_transaction
from tests.harness.faults.exactly_once import read
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until

TOTAL = 6000
ROWS = 50
TASK_ROWS = 500
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}
KINDS: list[Collection[int]] = [(), (2,)] if apache_kafka.installed() else [()]


class Rows:
    """Numbered rows as Spark hands them to a task; no more than the test has allowed."""

    def __init__(self) -> None:
        self._allowed = 0
        self._given = 0
        self._change = Condition()

    def allow(self, count: int) -> None:
        """Allow `count` rows to be written."""
        with self._change:
            self._allowed = count
            self._change.notify()

    def wait_until_taken(self, count: int, task: Future[None]) -> None:
        wait_until(lambda: task.done() or self._given >= count, f"{count} rows taken", 120)

    def batches(self, first: int, end: int) -> Iterator[Any]:
        """The rows from `first` on, again if they are asked for again."""
        for start in range(first, end, ROWS):
            with self._change:
                self._change.wait_for(lambda upto=start + ROWS: upto <= self._allowed)
            values = [str(number) for number in range(start, start + ROWS)]
            yield pa.RecordBatch.from_pydict({"value": values})
            self._given = max(self._given, start + ROWS)


def one_task(servers: str, rows: Rows) -> None:
    write_batches(options(servers, "one_task"), rows.batches(0, TOTAL))


def tasks_in_transactions(servers: str, rows: Rows) -> None:
    for first in range(0, TOTAL, TASK_ROWS):
        for attempt in range(4):  # spark.task.maxFailures
            try:
                given = rows.batches(first, first + TASK_ROWS)
                to = options(servers, "tasks_in_transactions")
                write_transaction(to, f"query-{first}", given)
                break
            except KafkapyError:
                if attempt == 3:
                    raise


def options(servers: str, topic: str) -> Any:
    """With connections of their own, as those of another process."""
    client = {"kafka.client.id": topic, "kafka.batch.size": "2000"}
    return parse_sink_options({"kafka.bootstrap.servers": servers, "topic": topic, **client})


WRITERS = (one_task, tasks_in_transactions)


@pytest.mark.parametrize("apache", KINDS, ids=lambda apache: "mixed" if apache else "ours")
def test_each_row_once_though_brokers_are_killed(tmp_path: Path, apache: Collection[int]) -> None:
    rows = [Rows() for _ in WRITERS]
    with (
        FaultCluster(tmp_path / "cluster", 3, SETTINGS, apache=apache) as cluster,
        ThreadPoolExecutor(len(WRITERS)) as workers,
    ):
        servers = cluster.bootstrap_servers
        for write in WRITERS:
            create_topic(servers, write.__name__, 3, replication_factor=3)
        tasks = [
            workers.submit(write, servers, each) for write, each in zip(WRITERS, rows, strict=True)
        ]

        def let_write(tenths: int) -> None:
            for each in rows:
                each.allow(TOTAL * tenths // 10)
            for each, task in zip(rows, tasks, strict=True):
                each.wait_until_taken(TOTAL * tenths // 10, task)

        try:
            for step, broker in enumerate(cluster.brokers.values()):
                let_write(3 * step + 1)
                broker.kill()
                let_write(3 * step + 3)
                cluster.start_supervised(broker)
                cluster.wait_for_full_isr()
        finally:
            let_write(10)
        for write, task in zip(WRITERS, tasks, strict=True):
            task.result(120)
            topic = write.__name__
            assert sorted(map(int, read(servers, topic))) == list(range(TOTAL))
            for partition in range(3):
                in_order = [int(value) for value in read(servers, topic, partition=partition)]
                assert in_order == sorted(in_order)
        cluster.stop_brokers()
