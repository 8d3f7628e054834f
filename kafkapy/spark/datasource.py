"""`format("kafkapy")`: the data source that Spark finds or is given.

It cannot be called `kafka`: Spark keeps that name for its own connector, installed or not.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from kafkapy.common.errors import ConfigError
from kafkapy.spark.options import SourceOptions, parse_options
from kafkapy.spark.sink_options import SinkOptions, check_columns, parse_sink_options


class KafkapyDataSource(DataSource):  # type: ignore[misc]
    """Topics as tables. Spark forbids an `__init__`, so options are read when it asks."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)` and `USING`."""
        return "kafkapy"

    def schema(self) -> StructType:
        """The fixed schema of Spark's Kafka source. Raises ConfigError for bad options."""
        return kafka_schema(parse_options(self.options, streaming=None).include_headers)

    def reader(self, schema: StructType) -> Any:
        """A batch reader. Raises ConfigError."""
        from kafkapy.spark.batch_reader import batch_reader

        options = parse_options(self.options, streaming=False)
        _check_schema(schema, options)
        return batch_reader(options)

    def streamReader(self, schema: StructType) -> Any:
        """A streaming reader. Raises ConfigError."""
        from kafkapy.spark.stream_reader import KafkapyStreamReader

        options = parse_options(self.options, streaming=True)
        _check_schema(schema, options)
        return KafkapyStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """A batch writer. Raises ConfigError."""
        from kafkapy.spark.writer import KafkapyBatchWriter

        if overwrite:
            raise ConfigError("Save mode Overwrite not allowed for Kafka; use append")
        return KafkapyBatchWriter(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """A streaming writer; what output mode complete gives is appended. Raises ConfigError."""
        from kafkapy.spark.writer import KafkapyStreamWriter

        return KafkapyStreamWriter(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = parse_sink_options(self.options)
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(types, options.topic)
        return options


def kafka_schema(include_headers: bool) -> StructType:
    """The schema of Spark's own Kafka source."""
    fields = {
        "key": BinaryType(),
        "value": BinaryType(),
        "topic": StringType(),
        "partition": IntegerType(),
        "offset": LongType(),
        "timestamp": TimestampType(),
        "timestampType": IntegerType(),
    }
    if include_headers:
        header = StructType().add("key", StringType()).add("value", BinaryType())
        fields["headers"] = ArrayType(header)
    schema = StructType()
    for name, kind in fields.items():
        schema.add(name, kind)
    return schema


def _check_schema(given: StructType, options: SourceOptions) -> None:
    """Refuse a schema of the user's own, which Spark lets pass."""
    fixed = kafka_schema(options.include_headers)
    if given.simpleString() != fixed.simpleString():
        raise ConfigError(
            "The schema of the kafkapy source is fixed; do not give one. "
            f"Given: {given.simpleString()}. Fixed: {fixed.simpleString()}"
        )
