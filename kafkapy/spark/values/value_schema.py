"""The schema of a subject, by which a job reads or writes keys or values."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.packages import require_packages
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema, RegistryClient, registry_client


class ValueSchema(NamedTuple):
    """A schema, the registry that knows those of other versions, and the name of a Protobuf
    message."""

    schema: RegisteredSchema
    registry: RegistryClient
    message: str | None = None


def latest_schema(
    urls: str, subject: str, message: str | None = None, user_info: str | None = None
) -> ValueSchema:
    """Read the latest version of a subject from the registries with these URLs.

    Raises:
        ConfigError: a URL is wrong, a package is missing, or a message is named that is not
            Protobuf's.
        RegistryError: no registry answers, or it does not have the subject.
    """
    require_packages("a schema registry in Spark")
    registry = registry_client(urls, user_info)
    schema = registry.latest(subject)
    if message is not None and schema.schema_type is not SchemaType.PROTOBUF:
        raise ConfigError(
            f"The schema of {subject} is of the type {schema.schema_type}: only Protobuf's have "
            f"messages, such as {message}"
        )
    return ValueSchema(schema, registry, message)


def spark_type(arrow: pa.DataType) -> DataType:
    """Spark's type for that of a reader or a writer."""
    if pa.types.is_struct(arrow):
        return StructType([StructField(each.name, spark_type(each.type)) for each in arrow])
    if pa.types.is_list(arrow):
        return ArrayType(spark_type(arrow.value_type))
    if pa.types.is_map(arrow):
        return MapType(spark_type(arrow.key_type), spark_type(arrow.item_type))
    if pa.types.is_timestamp(arrow):
        return TimestampNTZType() if arrow.tz is None else TimestampType()
    return from_arrow_type(arrow)
