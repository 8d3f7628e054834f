"""Values of a schema registry's serializers as columns.

The columns are those of the subject's latest version when the job starts. Values of other versions
are read as this version, by the rules of their format.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType

from kafkapy.schemas.records import SchemaType
from kafkapy.spark.source.shaping import CORRUPT_RECORD, unfold
from kafkapy.spark.values.value_reader import ValueReader, decode
from kafkapy.spark.values.value_schema import ValueSchema, columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE: Final = ("topic", "partition", "offset")


def decode_values(frame: DataFrame, given: ValueSchema, keep_corrupt_records: bool) -> DataFrame:
    """The fields of values as columns, then the record's own columns, except those with the name of
    a field.

    The fields of a null are null. A value that cannot be decoded ends the job. With
    `keep_corrupt_records` its fields are null, and it is in the column `_corrupt_record`.

    Raises:
        ConfigError: a type of the schema has no columns, or there is no such message.
    """
    columns = columns_of(_reader(given).arrow_type)
    if keep_corrupt_records:
        columns.add(CORRUPT_RECORD, BinaryType())
    arrow_type = to_arrow_type(columns, timezone="UTC")

    def decode_batch(values: pa.Array, *places: pa.Array) -> pa.Array:
        return decode(
            _reader(given),
            arrow_type,
            values.to_pylist(),
            [each.to_pylist() for each in places],
            keeps_corrupt=keep_corrupt_records,
        )

    # Spark would decode once more for a filter by a deterministic function.
    udf = F.arrow_udf(decode_batch, columns).asNondeterministic()
    has_places = set(_PLACE) <= set(frame.columns)
    parsed = udf("value", *(_PLACE if has_places else ()))
    return unfold(frame, parsed, columns.fieldNames())


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
