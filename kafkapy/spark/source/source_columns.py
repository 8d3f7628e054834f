"""The columns of a source: those of Spark's own Kafka source, or those of a schema.

Spark does not pass the needed columns to a Python source, so all of them go through two sockets. A
user's schema selects columns, as with file sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from kafkapy.common.errors import ConfigError

HEADERS: Final = "headers"

HIDDEN_HEADERS: Final = "__headers"
"""The name of `headers` while keys and values are decoded, if the job does not request it."""

_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(StructType().add("key", StringType()).add("value", BinaryType())),
}

COLUMNS: Final = tuple(name for name in _TYPES if name != HEADERS)
"""The default columns of a read. With includeHeaders, `headers` is another one."""


def default_columns(include_headers: bool) -> tuple[str, ...]:
    """The columns of a read without a user's schema."""
    return (*COLUMNS, HEADERS) if include_headers else COLUMNS


def schema_of(columns: Iterable[str]) -> StructType:
    """The columns with the types of Spark's own Kafka source.

    Raises:
        ConfigError: a column that the source does not have.
    """
    schema = StructType()
    for name in columns:
        schema.add(name, _type_of(name))
    return schema


def columns_of(given: StructType) -> tuple[str, ...]:
    """The columns of a schema: any of the source's, in any order.

    Raises:
        ConfigError: a column that the source does not have, or has with another type; a column
          without nulls; a duplicate; or no column.
    """
    names = tuple(given.fieldNames())
    if not names:
        raise ConfigError(f"The schema names no column; there are {', '.join(_TYPES)}")
    for field, nullable in zip(given.fields, given.toNullable().fields, strict=True):
        kind = _type_of(field.name)
        if field.dataType.simpleString() != kind.simpleString():
            raise ConfigError(
                f"The source's column '{field.name}' is {kind.simpleString()}, not "
                f"{field.dataType.simpleString()}; read it as that and cast it"
            )
        if field != nullable:  # Spark compares this in each task, and fails there
            raise ConfigError(
                f"The schema's column '{field.name}' must be nullable: leave out NOT NULL"
            )
        if names.count(field.name) > 1:
            raise ConfigError(f"The schema names column '{field.name}' twice")
    return names


def _type_of(name: str) -> DataType:
    if name not in _TYPES:
        raise ConfigError(f"The source has no column '{name}'; it has {', '.join(_TYPES)}")
    return _TYPES[name]
