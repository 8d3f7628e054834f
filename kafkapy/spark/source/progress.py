"""Progress of streaming queries: a line for each micro-batch, and metrics for Prometheus."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offsets import Offsets, from_json_object

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

POLL_S: Final = 0.5


class MicroBatch(NamedTuple):
    """Spark's report of one micro-batch. `lag` is in offsets, at its end, by partition. `moves` is
    false for the report of an idle query, and for a batch that ends at its start.
    """

    batch_id: int
    rows: int
    rows_per_s: float
    duration_ms: int
    lag: dict[TopicPartition, int]
    moves: bool


def micro_batch(progress: Mapping[str, Any]) -> MicroBatch:
    """Read a progress report, an entry of `StreamingQuery.recentProgress`."""
    lag: dict[TopicPartition, int] = {}
    for source in progress["sources"]:
        end, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        lag |= {tp: max(offset - end.get(tp, 0), 0) for tp, offset in latest.items()}
    return MicroBatch(
        progress["batchId"],
        progress["numInputRows"],
        progress.get("processedRowsPerSecond", 0.0),
        progress["durationMs"].get("triggerExecution", 0),
        lag,
        any(source["startOffset"] != source["endOffset"] for source in progress["sources"]),
    )


def format_line(batch: MicroBatch) -> str:
    """The line of a micro-batch for a terminal."""
    lags: dict[str, int] = defaultdict(int)
    for tp, partition_lag in batch.lag.items():
        lags[tp.topic] += partition_lag
    lag = ", ".join(f"{topic} {lags[topic]:,}" for topic in sorted(lags)) or "unknown"
    return (
        f"batch {batch.batch_id}: {batch.rows:,} rows in {batch.duration_ms / 1000:.1f} s, "
        f"{batch.rows_per_s:,.0f} rows/s, lag {lag}"
    )


def report_progress(
    query: StreamingQuery, reports: Iterable[Callable[[MicroBatch], object]]
) -> None:
    """Wait for the end of the query, and pass each of its micro-batches to the reports. A batch may
    have no rows, such as one of an aborted transaction.

    Raises:
        StreamingQueryException: the query failed.
    """
    last_batch_id = -1
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(POLL_S)) if reports else query.awaitTermination()
        for progress in query.recentProgress:
            batch = micro_batch(progress)
            if batch.batch_id > last_batch_id and (batch.rows or batch.moves):
                last_batch_id = batch.batch_id
                for report in reports:
                    report(batch)
        ended = ended or not reports


class Metrics:
    """The query's Prometheus metrics. Call it with each micro-batch."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        self.registry = CollectorRegistry()
        partition_labels = ["topic", "partition"]

        def gauge(name: str, help: str, labels: Iterable[str] = ()) -> Gauge:
            return Gauge(f"kafkapy_spark_{name}", help, labels, registry=self.registry)

        self._lag = gauge("lag_offsets", "Offsets not yet processed.", partition_labels)
        self._partitions: set[TopicPartition] = set()  # that have a lag
        self._batch = gauge("batch_id", "The last micro-batch.")
        self._rate = gauge("rows_per_second", "Rows a second of the last micro-batch.")
        self._duration = gauge("batch_duration_seconds", "How long the last micro-batch took.")
        self._rows = Counter("kafkapy_spark_rows", "Rows read so far.", registry=self.registry)

    def __call__(self, batch: MicroBatch) -> None:
        for (topic, partition), partition_lag in batch.lag.items():
            self._lag.labels(topic, str(partition)).set(partition_lag)
        for topic, partition in self._partitions - batch.lag.keys():  # the topic was deleted
            self._lag.remove(topic, str(partition))
        self._partitions = set(batch.lag)
        self._batch.set(batch.batch_id)
        self._rate.set(batch.rows_per_s)
        self._duration.set(batch.duration_ms / 1000)
        self._rows.inc(batch.rows)

    def serve(self, port: int, host: str = "127.0.0.1") -> Callable[[], None]:
        """Answer `GET /metrics` until the returned function is called.

        Raises:
            ConfigError: the port is taken.
        """
        from prometheus_client import start_http_server

        try:
            server, thread = start_http_server(port, host, self.registry)
        except OSError as error:
            raise ConfigError(f"--metrics-port {port} cannot be had: {error.strerror}") from None

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


def _offsets(reported: Any) -> Offsets:
    """The offsets of topics in a progress report: JSON text, an object, or nothing. A source of
    another kind, such as a directory, has none.
    """
    try:
        topics = json.loads(reported) if isinstance(reported, str) else reported
    except ValueError:
        return {}
    if not isinstance(topics, dict):
        return {}
    return from_json_object(
        {name: offsets for name, offsets in topics.items() if _by_partition(offsets)}
    )


def _by_partition(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name.isdecimal() and type(offset) is int for name, offset in value.items()
    )
