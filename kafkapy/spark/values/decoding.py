"""Keys and values of a schema registry's serializers as columns.

The schema's id is at the beginning of a value; if the rows have the column `headers`, it may be in
a header. The columns are those of the subject's latest version when the job starts. Data of other
versions is read as this version, by the rules of its format.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, StructType

from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.wire_format import SCHEMA_ID_HEADERS
from kafkapy.spark.sink.sink_options import COLUMN_TYPES
from kafkapy.spark.source.shaping import CORRUPT_RECORD, unfold
from kafkapy.spark.source.source_columns import HEADERS, HIDDEN_HEADERS
from kafkapy.spark.values.value_reader import ValueReader, decode
from kafkapy.spark.values.value_schema import ValueSchema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CORRUPT_KEY: Final = "_corrupt_key"
_DECODED: Final = "__decoded"
_PLACE: Final = ("topic", "partition", "offset")


def decode_values(frame: DataFrame, given: ValueSchema, keep_corrupt_records: bool) -> DataFrame:
    """The fields of values as columns, then the record's own columns, except those with the name of
    a field. A value that is not a record stays the column `value`.

    The fields of a null are null. A value that cannot be decoded ends the job. With
    `keep_corrupt_records` its fields are null, and it is in the column `_corrupt_record`.

    Raises:
        ConfigError: a type of the schema has no columns, or there is no such message; or a field
            hides a decoded key.
    """
    decoded = _decode(frame, "value", given, CORRUPT_RECORD if keep_corrupt_records else None)
    values = decoded.schema["value"].dataType
    if not isinstance(values, StructType):
        return decoded
    return unfold(decoded, F.col("value"), values.fieldNames())


def decode_keys(frame: DataFrame, given: ValueSchema, keep_corrupt_records: bool) -> DataFrame:
    """The decoded keys in the column `key`, which is a struct if they are records. A key that
    cannot be decoded ends the job. With `keep_corrupt_records` it is in the column `_corrupt_key`.

    Raises:
        ConfigError: a type of the schema has no columns, or there is no such message.
    """
    return _decode(frame, "key", given, _CORRUPT_KEY if keep_corrupt_records else None)


def _decode(frame: DataFrame, name: str, given: ValueSchema, corrupt_name: str | None) -> DataFrame:
    """The rows with one column decoded, and possibly another one, the last, for corrupt values. The
    header with the schema's id is removed, because it is wrong for the decoded value."""
    decoded = StructType().add(name, spark_type(_reader(given).arrow_type))
    if corrupt_name is not None:
        decoded.add(corrupt_name, BinaryType())
    arrow_type = to_arrow_type(decoded, timezone="UTC")
    header, others = _id_header(frame, name)
    has_headers = bool(others)

    def decode_batch(*columns: pa.Array) -> pa.Array:
        values, headers, *places = (each.to_pylist() for each in columns)
        return decode(_reader(given), arrow_type, values, headers if has_headers else None, places)

    # Spark would decode once more for a filter by a deterministic function.
    udf = F.arrow_udf(decode_batch, decoded).asNondeterministic()
    has_places = set(_PLACE) <= set(frame.columns)
    parsed = udf(name, header, *(_PLACE if has_places else ()))
    rows = frame.withColumn(_DECODED, parsed)
    found = {each: F.col(_DECODED).getField(each) for each in decoded.fieldNames()}
    return rows.withColumns(found | others).drop(_DECODED)


def _id_header(frame: DataFrame, name: str) -> tuple[Column, dict[str, Column]]:
    """The header with the schema's id of a key or a value, and the column of the other headers by
    its name; a null and nothing if the rows have no headers."""
    types = dict(frame.dtypes)
    column = HIDDEN_HEADERS if HIDDEN_HEADERS in types else HEADERS
    if types.get(column) not in COLUMN_TYPES[HEADERS]:
        return F.lit(None).cast("binary"), {}

    def is_id(header: Column) -> Column:
        return header["key"] == SCHEMA_ID_HEADERS[name]

    last = F.try_element_at(F.filter(column, is_id), F.lit(-1))
    return last["value"], {column: F.filter(column, lambda header: ~is_id(header))}


@lru_cache(8)
def _reader(given: ValueSchema) -> ValueReader:
    """The reader of this process: it keeps the schemas of the values that it has read."""
    schema, registry, message = given
    if schema.schema_type is SchemaType.PROTOBUF:
        from kafkapy.spark.values.protobuf_values import ProtobufReader

        return ProtobufReader(schema, registry, message)
    if schema.schema_type is SchemaType.JSON:
        from kafkapy.spark.values.json_values import JsonReader

        return JsonReader(schema)
    from kafkapy.spark.values.avro_values import AvroReader

    return AvroReader(schema, registry)
