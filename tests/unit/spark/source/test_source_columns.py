"""source_columns: what a schema of the user's own may say."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, StructType

from kafkapy.common.errors import ConfigError
from kafkapy.spark.source.source_columns import COLUMNS, columns_of, default_columns, schema_of

HEADERS_OF_KEYS = ArrayType(
    StructType().add("key", "string", nullable=False).add("value", "binary")
)


def test_the_schema_is_that_of_sparks_own_source() -> None:
    assert schema_of(default_columns(include_headers=True)).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert tuple(schema_of(default_columns(include_headers=False)).names) == COLUMNS


def test_columns_are_chosen_in_any_order() -> None:
    given = StructType().add("value", "binary").add("topic", "string")
    assert columns_of(given) == ("value", "topic")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (StructType(), "names no column; there are key, value, topic"),
        (StructType().add("Value", "binary"), "no column 'Value'; it has key, value"),
        (
            StructType().add("offset", "integer"),
            "column 'offset' is bigint, not int; read it as that",
        ),
        (StructType().add("key", "binary").add("key", "binary"), "names column 'key' twice"),
        (StructType().add("offset", "long", nullable=False), "'offset' must be nullable"),
        (StructType().add("headers", HEADERS_OF_KEYS), "'headers' must be nullable"),
    ],
)
def test_what_does_not_fit_is_named(given: StructType, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        columns_of(given)
