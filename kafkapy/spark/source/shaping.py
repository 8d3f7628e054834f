"""Converts records to rows with columns from JSON, and rows to records.

`--schema` converts JSON values to columns. Rows that are written without a column `value` are
converted to JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ConfigError
from kafkapy.spark.sink.sink_options import COLUMN_TYPES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CORRUPT_RECORD: Final = "_corrupt_record"
"""The column of the values that cannot be decoded."""

_PARSED: Final = "__parsed"


def parse_json_rows(frame: DataFrame, ddl: str) -> DataFrame:
    """The fields of JSON values as columns, then the record's own columns, except those with the
    name of a field.

    Fields of a malformed value are null. Add a field `_corrupt_record STRING` to keep the value.

    Raises:
        ConfigError: the schema is not Spark DDL.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    try:
        fields = StructType.fromDDL(ddl).fieldNames()
    except PySparkException as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(f"--schema is not DDL such as 'id INT, at TIMESTAMP': {reason}") from None
    options = {"columnNameOfCorruptRecord": CORRUPT_RECORD}
    parsed = F.from_json(F.col("value").cast("string"), ddl, options)
    return unfold(frame, parsed, fields)


def unfold(frame: DataFrame, parsed: Column, fields: Sequence[str]) -> DataFrame:
    """The fields of the struct `parsed` as columns, then the record's own columns, except `value`
    and those with the name of a field.

    Raises:
        ConfigError: a field has the name of the column `key`, which has been decoded.
    """
    hidden = {name.lower() for name in (*fields, "value")}
    if "key" in hidden and dict(frame.dtypes).get("key", "binary") != "binary":
        raise ConfigError(
            "The values have a field key, which would hide the decoded key: in a script, rename "
            "the column key before decode_values"
        )
    record_columns = [name for name in frame.columns if name.lower() not in hidden]
    return frame.withColumn(_PARSED, parsed).select(f"{_PARSED}.*", *record_columns)


def to_json_rows(frame: DataFrame) -> DataFrame:
    """Rows for the sink. Without a column `value`, all columns except the sink's own become JSON.
    If there are no others, the sink refuses the rows.
    """
    rest = [name for name in frame.columns if name not in COLUMN_TYPES]
    if "value" in frame.columns or not rest:
        return frame
    from pyspark.sql import functions as F

    sink_columns = [name for name in frame.columns if name in COLUMN_TYPES]
    fields = F.struct(*(F.col(f"`{name}`") for name in rest))
    return frame.select(F.to_json(fields).alias("value"), *sink_columns)
