"""encoding: columns as keys and values that Confluent's deserializers read."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.type import interval_pb2
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kafkapy.spark
from kafkapy.common.errors import ConfigError
from kafkapy.spark.submit.transform_job import run, sql_transform
from kafkapy.testing import SchemaRegistry
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire

MakeTopic = Callable[..., Topic]

POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "by", "type": {"type": "map", "values": "int"}},
        {"name": "place", "type": ["null", POINT]},
        {"name": "what", "type": ["string", "int", {**POINT, "name": "Spot"}]},
        {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["NEW", "PAID"]}},
        {"name": "note", "type": "string", "default": "none"},
    ],
}
SELECT = """
    SELECT 7 AS ID, TIMESTAMP '2026-11-29 12:30:00.25' AS at, CAST(12.5 AS DECIMAL(9, 2)) AS price,
        array('a', 'b') AS tags, map('k', 3) AS by, named_struct('y', 2, 'x', 1) AS place,
        named_struct('member0', NULL, 'member1', NULL, 'member2',
                     named_struct('x', 3, 'y', 4)) AS what,
        'PAID' AS state, 'the key' AS key
"""


@pytest.fixture
def encode(
    registry: SchemaRegistry, client: SchemaRegistryClient, request: pytest.FixtureRequest
) -> Callable[..., DataFrame]:
    """Encode a frame by a schema, in a subject with the name of the test."""

    def encoded(frame: DataFrame, schema: Any, kind: str = "AVRO", **more: str) -> DataFrame:
        subject = request.node.name
        text = schema if isinstance(schema, str) else json.dumps(schema)
        client.register_schema(subject, Schema(text, kind))
        return kafkapy.spark.encode_values(frame, subject, registry=registry.url, **more)

    return encoded


def context(topic: str = "orders") -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_of_all_kinds_of_columns(
    spark: SparkSession, client: SchemaRegistryClient, encode: Callable[..., DataFrame]
) -> None:
    frame = encode(spark.sql(SELECT), ORDER)
    assert frame.columns == ["value", "key"]
    (row,) = frame.collect()
    assert row["key"] == "the key"
    assert AvroDeserializer(client)(bytes(row["value"]), context()) == {
        "id": 7,
        "at": datetime.datetime(2026, 11, 29, 12, 30, 0, 250_000, tzinfo=datetime.UTC),
        "price": Decimal("12.50"),
        "tags": ["a", "b"],
        "by": {"k": 3},
        "place": {"x": 1, "y": 2},
        "what": {"x": 3, "y": 4},
        "state": "PAID",
        "note": "none",
    }


def test_protobuf(
    spark: SparkSession, client: SchemaRegistryClient, encode: Callable[..., DataFrame]
) -> None:
    text = (
        'syntax = "proto3"; package google.type; import "google/protobuf/timestamp.proto"; '
        "message Other {} message Interval { google.protobuf.Timestamp start_time = 1; "
        "google.protobuf.Timestamp end_time = 2; }"
    )
    frame = spark.sql("SELECT TIMESTAMP '2026-11-29 12:30:00.000001' AS start_time")
    (row,) = encode(frame, text, "PROTOBUF", message="Interval").collect()
    assert row["value"][5:7] == b"\x02\x02"  # the second message of the schema
    read = ProtobufDeserializer(interval_pb2.Interval, {"use.deprecated.format": False}, client)
    value = read(bytes(row["value"]), context())
    assert value.start_time.ToJsonString() == "2026-11-29T12:30:00.000001Z"
    assert not value.HasField("end_time")


def test_json(
    spark: SparkSession, client: SchemaRegistryClient, encode: Callable[..., DataFrame]
) -> None:
    schema = {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "rate": {"type": "number"},
            "by": {"type": "object", "additionalProperties": {"type": "integer"}},
            "note": {"type": "string"},
            "any": {},
        },
        "required": ["id"],
    }
    frame = spark.sql(
        """SELECT 7 AS id, 2 AS rate, map('k', 3) AS by, NULL AS note, '{"a": 1}' AS any"""
    )
    (row,) = encode(frame, schema, "JSON").collect()
    read = JSONDeserializer(None, schema_registry_client=client)
    assert read(bytes(row["value"]), context()) == {
        "id": 7,
        "rate": 2.0,
        "by": {"k": 3},
        "any": {"a": 1},
    }


def test_a_job_reads_one_schema_and_writes_another(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    encode: Callable[..., DataFrame],
) -> None:
    source, target = make_topic(), make_topic()
    number = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}
    client.register_schema("numbers", Schema(json.dumps(number), "AVRO"))
    client.register_schema("points", Schema(json.dumps(POINT), "AVRO"))
    wire(source=source.name, target=source.name, servers=source.servers)
    rows = encode(spark.range(5).withColumnRenamed("id", "n"), number)
    kafkapy.spark.write(rows)
    wire(
        source=source.name,
        target=target.name,
        servers=source.servers,
        schema_registry=registry.url,
        from_subject="numbers",
        to_subject="points",
        sql="SELECT CAST(n AS INT) AS x, 1 AS y, 'k' AS key FROM records WHERE n > 2",
    )
    run(spark, sql_transform(spark))
    read = AvroDeserializer(client)
    found = kafkapy.spark.read(spark, subscribe=target.name).orderBy("offset").collect()
    assert [(bytes(row["key"]), read(bytes(row["value"]), context())) for row in found] == [
        (b"k", {"x": 3, "y": 1}),
        (b"k", {"x": 4, "y": 1}),
    ]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("1 AS x", "needs y, which the rows do not have"),
        ("1 AS x, 2 AS y, 3 AS z", "has no field z; its fields: x, y"),
        ("1L AS x, 2 AS y", "The column x is bigint, and in the schema int: cast it"),
        ("'1' AS x, 2 AS y", "The column x is string, and in the schema int: cast it"),
        ("array(1) AS x, 2 AS y", "The column x is array<int>, and in the schema int: cast it"),
    ],
)
def test_columns_that_are_not_those_of_the_schema(
    spark: SparkSession, encode: Callable[..., DataFrame], select: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        encode(spark.sql(f"SELECT {select}"), POINT)


def test_fields_that_differ_in_case(
    spark: SparkSession, client: SchemaRegistryClient, encode: Callable[..., DataFrame]
) -> None:
    """A column was taken for the last of them."""
    fields = [{"name": "id", "type": "long"}, {"name": "ID", "type": "string", "default": "none"}]
    (row,) = encode(spark.range(7, 8), {"type": "record", "name": "A", "fields": fields}).collect()
    assert AvroDeserializer(client)(bytes(row["value"]), context()) == {"id": 7, "ID": "none"}
    del fields[1]["default"]
    with pytest.raises(ConfigError, match="needs ID, which the rows do not have"):
        encode(spark.range(1), {"type": "record", "name": "A", "fields": fields})


def test_parts_of_columns_that_are_not_those_of_the_schema(
    spark: SparkSession, encode: Callable[..., DataFrame]
) -> None:
    frame = spark.sql(SELECT)
    for other in ("named_struct('x', 1) AS place", "map(1, 3) AS by", "array(1) AS tags"):
        name = other.split()[-1]
        with pytest.raises(ConfigError, match=f"The column {name} is .*: cast it"):
            encode(frame.selectExpr(f"* EXCEPT ({name})", other), ORDER)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("* EXCEPT (state), 'ODD' AS state", "A row cannot be written by the schema .*ODD"),
        ("* EXCEPT (id), CAST(NULL AS INT) AS id", "A row cannot be written .* field id"),
    ],
)
def test_a_row_that_is_not_of_the_schema_ends_the_job(
    spark: SparkSession, encode: Callable[..., DataFrame], row: str, expected: str
) -> None:
    with pytest.raises(PySparkException, match=f"value_writer.RowFault: {expected}"):
        encode(spark.sql(SELECT).selectExpr(*row.split(", ")), ORDER).collect()


def test_a_value_that_is_not_a_record(
    spark: SparkSession, client: SchemaRegistryClient, encode: Callable[..., DataFrame]
) -> None:
    """A null is a tombstone, as with Confluent's serializers."""
    rows = spark.sql("SELECT * FROM VALUES (0, 'a'), (1, NULL) AS t(partition, value)")
    frame = encode(rows, '"string"')
    assert frame.columns == ["value", "partition"]
    first, second = frame.orderBy("partition").collect()
    assert AvroDeserializer(client)(bytes(first["value"]), context()) == "a"
    assert second["value"] is None
    with pytest.raises(ConfigError, match="The rows have no column value, which is to be encoded"):
        encode(spark.range(1), '"string"')
    with pytest.raises(ConfigError, match="has no field n; its fields: value"):
        encode(rows.withColumn("n", F.lit(1)), '"string"')


def test_a_schema_with_rules_for_writers_is_refused(
    spark: SparkSession, registry: SchemaRegistry, client: SchemaRegistryClient
) -> None:
    rule = {"name": "checked", "type": "CEL", "mode": "WRITE"}
    rules = RuleSet.from_dict({"domainRules": [rule]})
    client.register_schema("with-rules", Schema('"long"', "AVRO", rule_set=rules))
    frame = spark.range(1).select("id", F.col("id").alias("value"))
    with pytest.raises(ConfigError, match=r"rules for values that are written, .*: checked"):
        kafkapy.spark.encode_values(frame, "with-rules", registry=registry.url)


def test_keys_of_a_record_with_a_field_that_has_a_default(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    """Without a subject of the values, they are JSON."""
    topic = make_topic()
    place = {"name": "place", "type": "string", "default": "here"}
    fields = [{"name": "id", "type": "long"}, place]
    schema = {"type": "record", "name": "Key", "fields": fields}
    client.register_schema(f"{topic.name}-key", Schema(json.dumps(schema), "AVRO"))
    wire(
        source=topic.name,
        target=topic.name,
        servers=topic.servers,
        schema_registry=registry.url,
        to_key_subject=f"{topic.name}-key",
    )
    run(
        spark,
        lambda _: spark.sql("SELECT IF(id = 1, NULL, struct(id)) AS key, id AS n FROM range(2)"),
    )
    read = AvroDeserializer(client)
    of_key = SerializationContext(topic.name, MessageField.KEY)
    rows = kafkapy.spark.read(spark).collect()
    found = [(read(row["key"] and bytes(row["key"]), of_key), row["value"]) for row in rows]
    assert sorted(found, key=str) == [
        (None, b'{"n":1}'),
        ({"id": 0, "place": "here"}, b'{"n":0}'),
    ]


@pytest.mark.parametrize(
    ("select", "schema", "expected"),
    [
        ("1 AS x", POINT, "The rows have no column key, which is to be encoded"),
        ("7 AS key", POINT, r"The column key is int, and in the schema struct<.*struct\(id\) AS"),
        ("struct(1 AS x) AS key", "int", "The column key is struct<x:int>, and in the schema int"),
        ("struct(1 AS x) AS key", POINT, r"needs key\.y, which the rows do not have"),
        ("struct(1 AS x, 2 AS y, 3 AS z) AS key", POINT, r"has no field key\.z; its fields: x, y"),
        ("struct('1' AS x, 2 AS y) AS key", POINT, r"The column key\.x is string, and .*: cast it"),
    ],
)
def test_keys_that_are_not_of_the_schema(
    spark: SparkSession,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    select: str,
    schema: Any,
    expected: str,
) -> None:
    subject = f"key-{schema if isinstance(schema, str) else 'point'}"
    client.register_schema(subject, Schema(json.dumps(schema), "AVRO"))
    with pytest.raises(ConfigError, match=expected):
        kafkapy.spark.encode_keys(spark.sql(f"SELECT {select}"), subject, registry=registry.url)
