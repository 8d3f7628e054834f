"""Columns as values of a schema registry's serializers, by the latest schema of a subject."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.spark.sink.sink_options import COLUMN_TYPES
from kafkapy.spark.values.value_schema import ValueSchema, columns_of
from kafkapy.spark.values.value_writer import ValueWriter, encode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")


def encode_values(frame: DataFrame, given: ValueSchema) -> DataFrame:
    """The columns of a schema as the column `value`, beside the sink's other columns: key, topic,
    partition and headers.

    A number may become a wider one. Other types must be those of the schema.

    Raises:
        ConfigError: a column is missing, is not in the schema, or has another type.
    """
    writer = _writer(given)
    own = [name for name in frame.columns if name in COLUMN_TYPES and name != "value"]
    columns = _matching(frame, own, writer)

    def encode_batch(rows: pa.Array) -> pa.Array:
        return encode(_writer(given), rows)

    udf = F.arrow_udf(encode_batch, BinaryType())
    return frame.select(udf(F.struct(*columns)).alias("value"), *own)


def _matching(frame: DataFrame, own: list[str], writer: ValueWriter) -> list[Column]:
    """The columns with the names and the types of the schema."""
    wanted = {each.name.lower(): each for each in columns_of(writer.arrow_type)}
    given = {each.name.lower(): each for each in frame.schema if each.name not in own}
    if unknown := [each.name for name, each in given.items() if name not in wanted]:
        names = ", ".join(each.name for each in wanted.values())
        raise ConfigError(
            f"The schema {writer.schema_id} has no field {', '.join(unknown)}; its fields: {names}"
        )
    if missing := sorted(name for name in writer.required if name.lower() not in given):
        raise ConfigError(
            f"The schema {writer.schema_id} needs {', '.join(missing)}, which the rows do not have"
        )
    return [_matching_column(each, wanted[name]) for name, each in given.items()]


def _matching_column(given: StructField, wanted: StructField) -> Column:
    if not _fits(given.dataType, wanted.dataType):
        raise ConfigError(
            f"The column {given.name} is {given.dataType.simpleString()}, and in the schema "
            f"{wanted.dataType.simpleString()}: cast it"
        )
    column = F.col(f"`{given.name}`")
    if not isinstance(wanted.dataType, StructType | ArrayType | MapType):
        column = column.cast(wanted.dataType)
    return column.alias(wanted.name)


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether each value of a type is one of another type. Fields of structs go by name."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        types = {each.name: each.dataType for each in wanted}
        return types.keys() == set(given.fieldNames()) and all(
            _fits(each.dataType, types[each.name]) for each in given
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _fits(given.keyType, wanted.keyType) and _fits(given.valueType, wanted.valueType)
    names = given.simpleString(), wanted.simpleString()
    if all(each in _NUMBERS for each in names):
        return _NUMBERS.index(names[0]) <= _NUMBERS.index(names[1])
    return isinstance(given, NullType) or names[0] == names[1]


@lru_cache(8)
def _writer(given: ValueSchema) -> ValueWriter:
    """The writer of this process."""
    schema, _, message = given
    if schema.schema_type is SchemaType.PROTOBUF:
        from kafkapy.spark.values.protobuf_values import ProtobufWriter

        return ProtobufWriter(schema, message)
    if schema.schema_type is SchemaType.JSON:
        from kafkapy.spark.values.json_values import JsonWriter

        return JsonWriter(schema)
    from kafkapy.spark.values.avro_values import AvroWriter

    return AvroWriter(schema)
