"""A Spark job that takes log lines from a topic to a store: Parquet, and Elasticsearch if asked.

    kafkapy spark-submit --py-files scripts/jobs/log_summary.py --from logs --checkpoint /tmp/logs \
        --bootstrap-server localhost:9092 scripts/jobs/log_store.py --out /data/logs

Each micro-batch becomes one directory `events/batch=N` of parsed lines and one `counts/batch=N` of
lines by level and template; written again as a whole if it runs again. Into Elasticsearch each line
goes under the id `topic-partition-offset`, so that one sent twice is there once. With --once the
job ends at the end of the topic.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import kafkapy.spark
from kafkapy.spark.submit.session import CHECKPOINT, conf_of

if __package__:
    from scripts.jobs.log_summary import parse
else:  # run by spark-submit, beside its neighbour
    from log_summary import parse  # type: ignore[import-not-found, no-redef]

BULK_ROWS = 1000
LIMIT_S = 30


class BulkFailure(Exception):
    """Elasticsearch refused documents; the message has the first reason."""


def events(records: DataFrame) -> DataFrame:
    """Lines with their place in the topic, parsed."""
    lines = records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.coalesce(F.col("value").cast("string"), F.lit("")).alias("line"),
    )
    return parse(lines)


def to_parquet(out: Path) -> Callable[[DataFrame, int], None]:
    """Make a writer of micro-batches for `foreachBatch`."""

    def write(frame: DataFrame, batch: int) -> None:
        frame = frame.persist()
        frame.write.mode("overwrite").parquet(str(out / "events" / f"batch={batch}"))
        counts = frame.groupBy("level", "template").count()
        counts.coalesce(1).write.mode("overwrite").parquet(str(out / "counts" / f"batch={batch}"))
        frame.unpersist()

    return write


def to_elasticsearch(url: str, index: str) -> Callable[[DataFrame, int], None]:
    """Make a writer of micro-batches for `foreachBatch`: every task sends its rows."""

    def send(rows: Iterable[Row]) -> None:
        for some in portions(rows, BULK_ROWS):
            bulk(url, index, some)

    return lambda frame, _batch: frame.foreachPartition(send)


def portions(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Lists of at most `size` rows."""
    portion: list[Row] = []
    for row in rows:
        portion.append(row)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion


def bulk(url: str, index: str, rows: Sequence[Row]) -> None:
    """One request to the bulk API.

    Raises:
        BulkFailure: a document was refused, or the server was.
    """
    lines: list[str] = []
    for row in rows:
        place = f"{row['topic']}-{row['partition']}-{row['offset']}"
        lines.append(json.dumps({"index": {"_index": index, "_id": place}}))
        lines.append(json.dumps(row.asDict(), default=lambda moment: moment.isoformat()))
    request = urllib.request.Request(
        f"{url.rstrip('/')}/_bulk",
        data=("\n".join(lines) + "\n").encode(),
        headers={"Content-Type": "application/x-ndjson"},
    )
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            result: dict[str, Any] = json.load(answer)
    except urllib.error.URLError as error:
        raise BulkFailure(f"{request.full_url}: {error}") from error
    refused = [item["index"] for item in result["items"] if "error" in item["index"]]
    if refused:
        raise BulkFailure(f"{len(refused)} documents, the first {refused[0]['error']}")


def main(words: Sequence[str]) -> None:
    """Follow the topic."""
    parser = argparse.ArgumentParser(prog="log_store.py")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where Parquet files go")
    parser.add_argument("--elasticsearch", metavar="URL", help="for example http://localhost:9200")
    parser.add_argument("--index", default="logs")
    parser.add_argument("--once", action="store_true", help="end at the end of the topic")
    given = parser.parse_args(words)
    if given.out is None and given.elasticsearch is None:
        parser.error("name --out or --elasticsearch")
    spark = SparkSession.builder.appName("log store").getOrCreate()
    checkpoint = conf_of(spark, CHECKPOINT)
    if checkpoint is None:
        parser.error("run it with 'kafkapy spark-submit --checkpoint DIR'")
    stores = [to_parquet(given.out)] if given.out else []
    if given.elasticsearch:
        stores.append(to_elasticsearch(given.elasticsearch, given.index))

    def store(frame: DataFrame, batch: int) -> None:
        for each in stores:
            each(frame, batch)

    writer = events(kafkapy.spark.read_stream(spark)).writeStream.foreachBatch(store)
    writer = writer.option("checkpointLocation", checkpoint)
    if given.once:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1:])
