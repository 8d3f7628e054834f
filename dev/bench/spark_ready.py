"""A Spark source that does nothing: it hands one ready batch to Spark again and again.

The time of a job with this source is the time that Spark itself needs for rows of this schema from
Python: no source in Python is faster. `scripts/bench --spark` shows it beside the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from kafkapy.spark.source.arrow import BATCH_ROWS_MAX, arrow_schema
from kafkapy.spark.source.source_columns import COLUMNS, schema_of

BATCH_BYTES: Final = 1 << 20
"""About the size of a batch of kafkapy's source."""
STREAMED: Final = 1000


class ReadySource(DataSource):
    """Options: `records` in all, `size` of a value in bytes, `filling` (a value's text after its
    number), `partitions`."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> Any:
        return schema_of(COLUMNS)

    def reader(self, schema: Any) -> DataSourceReader:
        return ReadyReader(self.options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return ReadyStreamReader(self.options)


class ReadyReader(DataSourceReader):
    """Yields slices of one ready batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._records = int(options["records"])
        self._size = int(options["size"])
        self._filling = options["filling"].encode()
        self._partitions = int(options["partitions"])

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(index) for index in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        left = self._records // self._partitions + (
            partition.value < self._records % self._partitions
        )
        batch = self._batch(min(left, BATCH_ROWS_MAX, BATCH_BYTES // self._size))
        while left:
            rows = min(left, batch.num_rows)
            yield batch.slice(0, rows)
            left -= rows

    def _batch(self, rows: int) -> Any:
        schema = arrow_schema(COLUMNS)
        columns = {
            "key": [None] * rows,
            "value": [(b"%d" % i + self._filling)[: self._size] for i in range(rows)],
            "topic": ["ready"] * rows,
            "partition": [0] * rows,
            "offset": list(range(rows)),
            "timestamp": [0] * rows,
            "timestampType": [0] * rows,
        }
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class ReadyStreamReader(DataSourceStreamReader):
    """A stream of one batch of STREAMED records, all available at once."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._reader = ReadyReader({**options, "records": f"{STREAMED}"})

    def initialOffset(self) -> dict[str, int]:
        return {"offset": 0}

    def latestOffset(self, *args: object) -> dict[str, int]:
        return {"offset": STREAMED}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._reader.read(partition)
