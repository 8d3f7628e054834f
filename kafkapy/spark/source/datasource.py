"""`format("kafkapy")`: the data source, which Spark finds or a script registers.

It cannot be named `kafka`: Spark reserves that name for its own connector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from kafkapy.common.errors import ConfigError
from kafkapy.spark.sink.sink_options import SinkOptions, check_columns, parse_sink_options
from kafkapy.spark.source.options import SourceOptions, parse_options
from kafkapy.spark.source.source_columns import columns_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KafkapyDataSource(DataSource):  # type: ignore[misc]
    """Topics as tables. Spark forbids an `__init__`, so options are read on demand."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)` and `USING`."""
        return "kafkapy"

    def schema(self) -> StructType:
        """The schema of Spark's Kafka source. Raises ConfigError for bad options."""
        return schema_of(parse_options(self.options, streaming=None).columns)

    def reader(self, schema: StructType) -> Any:
        """A batch reader. Raises ConfigError."""
        from kafkapy.spark.source.batch_reader import batch_reader

        return batch_reader(self._source(schema, streaming=False))

    def streamReader(self, schema: StructType) -> Any:
        """A streaming reader. Raises ConfigError."""
        from kafkapy.spark.source.stream_reader import KafkapyStreamReader

        return KafkapyStreamReader(self._source(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """A batch writer. Raises ConfigError."""
        from kafkapy.spark.sink.writer import KafkapyBatchWriter

        if overwrite:
            raise ConfigError("Save mode Overwrite not allowed for Kafka; use append")
        return KafkapyBatchWriter(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """A streaming writer. The rows of output mode complete are appended. Raises ConfigError."""
        from kafkapy.spark.sink.writer import KafkapyStreamWriter

        return KafkapyStreamWriter(self._sink(schema))

    def _source(self, schema: StructType, *, streaming: bool) -> SourceOptions:
        """The options, with the columns of `schema`: the user's schema, or that of the options."""
        options = parse_options(self.options, streaming=streaming)
        return replace(options, columns=columns_of(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = parse_sink_options(self.options)
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(types, options.topic)
        return options
