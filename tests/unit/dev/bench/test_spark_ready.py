"""The source that does nothing must still give as many rows, and as large ones, as it is to."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from dev.bench.spark_ready import BATCH_BYTES, ReadySource
from kafkapy.spark.source.arrow import arrow_schema
from kafkapy.spark.source.source_columns import COLUMNS

OPTIONS = {"records": "20001", "size": "100", "filling": " " * 100, "partitions": "2"}


def test_all_records_in_batches_as_large_as_ours() -> None:
    source = ReadySource(OPTIONS)
    reader = source.reader(source.schema())
    partitions = list(reader.partitions())
    assert [partition.value for partition in partitions] == [0, 1]
    batches = [list(reader.read(InputPartition(index))) for index in range(2)]
    assert [sum(batch.num_rows for batch in read) for read in batches] == [10_001, 10_000]
    first = batches[0][0]
    assert first.schema == arrow_schema(COLUMNS)
    assert first.num_rows == 10_000
    assert {len(value.as_py()) for value in first["value"]} == {100}
    assert first["value"][7].as_py().startswith(b"7 ")


def test_large_values_make_smaller_batches() -> None:
    source = ReadySource({**OPTIONS, "size": "5000", "filling": "x" * 5000})
    reader = source.reader(source.schema())
    assert max(b.num_rows for b in reader.read(InputPartition(0))) == BATCH_BYTES // 5000


def test_a_stream_of_one_batch() -> None:
    source = ReadySource(OPTIONS)
    reader = source.streamReader(source.schema())
    span = reader.initialOffset(), reader.latestOffset()
    batches = [batch for part in reader.partitions(*span) for batch in reader.read(part)]
    assert sum(batch.num_rows for batch in batches) == 1000
