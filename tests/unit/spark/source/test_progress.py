"""progress: Spark's reports as lines for people and metrics for Prometheus."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, cast

import pytest
from pyspark.sql.streaming import StreamingQuery

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.progress import (
    Metrics,
    MicroBatch,
    format_line,
    micro_batch,
    report_progress,
)
from tests.harness.processes.broker_process import free_port

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def report(batch_id: int = 7, rows: int = 1500) -> dict[str, Any]:
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "processedRowsPerSecond": 1000.4,
        "durationMs": {"triggerExecution": 1499},
        "sources": [
            {
                "endOffset": {"@from": {"a": {"0": 1}}, "a": {"0": 10}, "b": {"1": 5}},
                "latestOffset": {"a": {"0": 25}, "b": {"1": 4}},
            },
            {"endOffset": json.dumps({"c": {"0": 2}}), "latestOffset": None},
        ],
    }


def test_lag_is_what_is_behind_the_newest_offsets() -> None:
    assert micro_batch(report()) == MicroBatch(7, 1500, 1000.4, 1499, {A: 15, B: 0})


@pytest.mark.parametrize(
    "offset",
    [
        '{"logOffset":3}',  # a directory's
        '{"sourceVersion":1,"reservoirId":"x","isStartingVersion":true}',  # a Delta table's
        '{"shard-0":{"position":"49"}}',
        '{"0":{"x":1},"t":{"0":null}}',
        "no JSON",
        "5",
        "[1]",
    ],
)
def test_a_source_that_counts_otherwise_has_no_lag(offset: str) -> None:
    given = report()
    given["sources"].append({"endOffset": offset, "latestOffset": offset})
    assert micro_batch(given) == micro_batch(report())


def test_a_line_sums_the_lag_of_a_topic() -> None:
    batch = MicroBatch(7, 1500, 1000.4, 1499, {A: 15_000, TopicPartition("a", 1): 1, B: 0})
    assert format_line(batch) == "batch 7: 1,500 rows in 1.5 s, 1,000 rows/s, lag a 15,001, b 0"
    assert format_line(batch._replace(lag={})).endswith("lag unknown")


class Query:
    """A query that reports two batches twice, then one more, and ends."""

    def __init__(self) -> None:
        self.waits = 0

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        self.waits += 1
        return self.waits == 3 if timeout is not None else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [report(0), report(1), report(1, rows=0), report(2)][: 2 if self.waits < 3 else 4]


def test_every_batch_with_rows_is_reported_once() -> None:
    seen: list[int] = []
    query = Query()
    report_progress(cast(StreamingQuery, query), [lambda batch: seen.append(batch.batch_id)])
    assert seen == [0, 1, 2]
    assert query.waits == 3


def test_nobody_to_tell_is_a_plain_wait() -> None:
    query = Query()
    report_progress(cast(StreamingQuery, query), [])
    assert query.waits == 1


def test_prometheus_reads_rows_and_lag() -> None:
    metrics, port = Metrics(), free_port()
    stop = metrics.serve(port)
    try:
        metrics(micro_batch(report(6)))
        metrics(micro_batch(report(7)))
        with pytest.raises(ConfigError, match=f"--metrics-port {port} cannot be had"):
            metrics.serve(port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        stop()
    assert 'kafkapy_spark_lag_offsets{partition="0",topic="a"} 15.0' in text
    assert "kafkapy_spark_rows_total 3000.0" in text
    assert "kafkapy_spark_batch_id 7.0" in text
    assert "kafkapy_spark_batch_duration_seconds 1.499" in text
