"""shaping: JSON values to columns, columns to JSON values."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from kafkapy.common.errors import ConfigError
from kafkapy.spark.source.shaping import parse_json_rows, to_json_rows


def test_values_unfold_and_rows_fold(spark: SparkSession) -> None:
    records = spark.sql(
        """SELECT CAST(value AS BINARY) AS value, 'k' AS key, 't' AS topic, offset
           FROM VALUES ('{"id": 1, "Offset": 9}', 0), ('junk', 1) AS records(value, offset)"""
    )
    rows = parse_json_rows(records, "id INT, offset INT, _corrupt_record STRING")
    assert rows.columns == ["id", "offset", "_corrupt_record", "key", "topic"]
    assert [tuple(row) for row in rows.orderBy("id").collect()] == [
        (None, None, "junk", "k", "t"),
        (1, None, None, "k", "t"),
    ]
    folded = to_json_rows(rows.where("id = 1").selectExpr("id", "id + 1 AS next", "key"))
    assert folded.columns == ["value", "key"]
    (row,) = folded.collect()
    assert json.loads(row["value"]) == {"id": 1, "next": 2}
    assert to_json_rows(folded) is folded


def test_a_field_does_not_hide_a_decoded_key(spark: SparkSession) -> None:
    records = spark.sql("SELECT 7 AS key, CAST('{}' AS BINARY) AS value")
    with pytest.raises(ConfigError, match="The values have a field key, which would hide the"):
        parse_json_rows(records, "Key STRING")
    binary = records.selectExpr("CAST('k' AS BINARY) AS key", "value")
    assert parse_json_rows(binary, "Key STRING").columns == ["Key"]


def test_rows_of_keys_alone_do_not_get_an_empty_json_object_as_value(spark: SparkSession) -> None:
    """The sink refuses them, as Spark's Kafka sink does: "Required attribute 'value' not found"."""
    keys = spark.sql("SELECT 'k' AS key, 't' AS topic")
    assert to_json_rows(keys) is keys


def test_a_schema_that_is_no_ddl(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="is not DDL such as 'id INT"):
        parse_json_rows(spark.range(1).selectExpr("CAST(id AS STRING) AS value"), "id of INT")
