"""Columns as keys and values of a schema registry's serializers, by the latest schema of a
subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from kafkapy.spark.values.value_schema import ValueSchema, spark_type
from kafkapy.spark.values.value_writer import ValueWriter, encode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")


def encode_values(frame: DataFrame, given: ValueSchema) -> DataFrame:
    """The columns of a schema as the column `value`, beside the sink's other columns: key, topic,
    partition and headers. If the schema is not a record, the column `value` is encoded.

    A number may become a wider one. Other types must be those of the schema.

    Raises:
        ConfigError: a column is missing, is not in the schema, or has another type.
    """
    writer = _writer(given)
    own = [name for name in frame.columns if name in COLUMN_TYPES and name != "value"]
    wanted = spark_type(writer.arrow_type)
    columns = [(each, F.col(f"`{each.name}`")) for each in frame.schema if each.name not in own]
    if isinstance(wanted, StructType):
        value = F.struct(*_matching(columns, wanted, writer))
    else:
        _column(frame, "value")
        (value,) = _matching(columns, StructType([StructField("value", wanted)]), writer)
    return frame.select(_encoder(given)(value).alias("value"), *own)


def encode_keys(frame: DataFrame, given: ValueSchema) -> DataFrame:
    """The rows with an encoded column `key`, which must be a struct if the schema is a record. A
    null stays null.

    Raises:
        ConfigError: the column is missing, or it has another type.
    """
    writer = _writer(given)
    field, key = _column(frame, "key"), F.col("key")
    wanted = spark_type(writer.arrow_type)
    if isinstance(wanted, StructType) and isinstance(field.dataType, StructType):
        fields = [(each, key.getField(each.name)) for each in field.dataType]
        struct = F.struct(*_matching(fields, wanted, writer, "key."))
        key = F.when(key.isNotNull(), struct)
    else:
        key = _matching_column(field, key, wanted)
    return frame.withColumn("key", _encoder(given)(key))


def _encoder(given: ValueSchema) -> Callable[[Column], Column]:
    def encode_batch(values: pa.Array) -> pa.Array:
        return encode(_writer(given), values)

    udf: Callable[[Column], Column] = F.arrow_udf(encode_batch, BinaryType())
    return udf


def _column(frame: DataFrame, name: str) -> StructField:
    """
    Raises:
        ConfigError: there is no such column.
    """
    if name not in frame.columns:
        raise ConfigError(f"The rows have no column {name}, which is to be encoded")
    return frame.schema[name]


def _matching(
    given: Sequence[tuple[StructField, Column]],
    wanted: StructType,
    writer: ValueWriter,
    path: str = "",
) -> list[Column]:
    """The columns with the names and the types of the schema. `path` is before their names in
    errors.

    Raises:
        ConfigError: a column is missing, is not in the schema, or has another type.
    """
    # Spark ignores the case of names. Of two fields that differ only in case, the equal one counts.
    fields = {each.name.lower(): each for each in wanted} | {each.name: each for each in wanted}
    names = [each.name if each.name in fields else each.name.lower() for each, _ in given]
    columns = list(zip(given, names, strict=True))
    if unknown := [path + each.name for (each, _), name in columns if name not in fields]:
        raise ConfigError(
            f"The schema {writer.schema_id} has no field {', '.join(unknown)}; its fields: "
            f"{', '.join(wanted.fieldNames())}"
        )
    absent = writer.required - {fields[name].name for name in names}
    if missing := sorted(path + name for name in absent):
        raise ConfigError(
            f"The schema {writer.schema_id} needs {', '.join(missing)}, which the rows do not have"
        )
    found = []
    for (each, column), name in columns:
        named = StructField(path + each.name, each.dataType)
        matching = _matching_column(named, column, fields[name].dataType)
        found.append(matching.alias(fields[name].name))
    return found


def _matching_column(given: StructField, column: Column, wanted: DataType) -> Column:
    """
    Raises:
        ConfigError: the column has another type.
    """
    if not _fits(given.dataType, wanted):
        hint = "cast it"
        if isinstance(wanted, StructType) and given.name == "key":
            hint = "make it one, such as 'struct(id) AS key'"
        raise ConfigError(
            f"The column {given.name} is {given.dataType.simpleString()}, and in the schema "
            f"{wanted.simpleString()}: {hint}"
        )
    if isinstance(wanted, StructType | ArrayType | MapType):
        return column
    return column.cast(wanted)


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
    """The writer of this process.

    Raises:
        ConfigError: the schema has rules for values that are written.
    """
    schema, _, message = given
    schema.check_may_write()
    if schema.schema_type is SchemaType.PROTOBUF:
        from kafkapy.spark.values.protobuf_values import ProtobufWriter

        return ProtobufWriter(schema, message)
    if schema.schema_type is SchemaType.JSON:
        from kafkapy.spark.values.json_values import JsonWriter

        return JsonWriter(schema)
    from kafkapy.spark.values.avro_values import AvroWriter

    return AvroWriter(schema)
