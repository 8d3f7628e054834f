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


def report(batch_id: int = 7, rows: int = 1500, *, moves: bool = True) -> dict[str, Any]:
    end = {"@from": {"a": {"0": 1}}, "a": {"0": 10}, "b": {"1": 5}}
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "processedRowsPerSecond": 1000.4,
        "durationMs": {"triggerExecution": 1499},
        "sources": [
            {
                "startOffset": {"a": {"0": 1}, "b": {"1": 5}} if moves else end,
                "endOffset": end,
                "latestOffset": {"a": {"0": 25}, "b": {"1": 4}},
            },
            {
                "startOffset": json.dumps({"c": {"0": 2}}),
                "endOffset": json.dumps({"c": {"0": 2}}),
                "latestOffset": None,
            },
        ],
    }


def test_lag_is_what_is_behind_the_newest_offsets() -> None:
    assert micro_batch(report()) == MicroBatch(7, 1500, 1000.4, 1499, {A: 15, B: 0}, True)


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
    given["sources"].append(dict.fromkeys(("startOffset", "endOffset", "latestOffset"), offset))
    assert micro_batch(given) == micro_batch(report())


def test_a_line_sums_the_lag_of_a_topic() -> None:
    lag = {A: 15_000, TopicPartition("a", 1): 1, B: 0}
    batch = MicroBatch(7, 1500, 1000.4, 1499, lag, True)
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
        idle = report(2, rows=0, moves=False)
        return [report(0), report(1), idle, report(2, rows=0)][: 2 if self.waits < 3 else 4]


def test_every_batch_is_reported_once_also_one_of_an_aborted_transaction() -> None:
    """Without its report, the lag of before stays for as long as the query is idle."""
    seen: list[int] = []
    query = Query()
    report_progress(cast(StreamingQuery, query), [lambda batch: seen.append(batch.batch_id)])
    assert seen == [0, 1, 2]
    assert query.waits == 3


def test_nobody_to_tell_is_a_plain_wait() -> None:
    query = Query()
    report_progress(cast(StreamingQuery, query), [])
    assert query.waits == 1


def test_a_deleted_topic_has_no_lag_for_ever() -> None:
    metrics = Metrics()
    metrics(micro_batch(report(6)))
    metrics(micro_batch(report(7))._replace(lag={B: 3}))
    assert metrics.registry.get_sample_value("kafkapy_spark_lag_offsets", labels(B)) == 3
    assert metrics.registry.get_sample_value("kafkapy_spark_lag_offsets", labels(A)) is None


def labels(topic_partition: TopicPartition) -> dict[str, str]:
    topic, partition = topic_partition
    return {"topic": topic, "partition": str(partition)}


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
