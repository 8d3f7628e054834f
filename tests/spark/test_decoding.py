"""decoding: keys and values of Confluent's serializers as columns."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp
from google.type import interval_pb2
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import kafkapy.spark
from kafkapy.common.errors import ConfigError
from kafkapy.schemas.registry_client import NotRegistered, RegistryError
from kafkapy.spark.submit.transform_job import refusal, run, sql_transform
from kafkapy.testing import SchemaRegistry
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire

MakeTopic = Callable[..., Topic]

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "by", "type": ["null", {"type": "map", "values": "int"}], "default": None},
    ],
}
LATER = ORDER | {
    "fields": [
        *ORDER["fields"],  # type: ignore[misc]
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
    ]
}
KEY = {
    "type": "record",
    "name": "Key",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}
AT = datetime.datetime(2026, 11, 29, 12, 30, 0, 250_000, tzinfo=datetime.UTC)
VALUES = {
    "id": 7,
    "at": AT,
    "day": AT.date(),
    "price": Decimal("12.50"),
    "tags": ["a", "b"],
    "by": {"x": 1},
}
COLUMNS = {**VALUES, "at": AT.replace(tzinfo=None)}  # as `collect` returns them


def of_value(topic: Topic) -> SerializationContext:
    return SerializationContext(topic.name, MessageField.VALUE)


def send_values(topic: Topic, *values: bytes | None) -> None:
    topic.send((0, b"key", value) for value in values)


def fields_of(row: Row) -> dict[str, Any]:
    """A row without the columns of the record."""
    own = {"key", "topic", "partition", "offset", "timestamp", "timestampType"}
    return {name: value for name, value in row.asDict(recursive=True).items() if name not in own}


def test_avro_values_of_two_versions(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    topic = make_topic()
    earlier = AvroSerializer(client, json.dumps(ORDER))
    later = AvroSerializer(client, json.dumps(LATER))
    send_values(
        topic,
        earlier(VALUES, of_value(topic)),
        later({**VALUES, "note": "paid", "raw": b"\x00"}, of_value(topic)),
        None,
    )
    wire(source=topic.name, servers=topic.servers, schema_registry=registry.url)
    frame = kafkapy.spark.decode_values(kafkapy.spark.read(spark), f"{topic.name}-value")
    assert frame.schema.simpleString().startswith(
        "struct<id:bigint,at:timestamp,day:date,price:decimal(9,2),tags:array<string>,"
        "by:map<string,int>,note:string,raw:binary,key:binary,topic:string"
    )
    assert [fields_of(row) for row in frame.orderBy("offset").collect()] == [
        {**COLUMNS, "note": None, "raw": b"\xff"},
        {**COLUMNS, "note": "paid", "raw": b"\x00"},
        dict.fromkeys((*VALUES, "note", "raw")),
    ]


def test_protobuf_values_are_columns_of_one_message(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    topic = make_topic()
    serialize = ProtobufSerializer(interval_pb2.Interval, client)
    value = interval_pb2.Interval(start_time=Timestamp(seconds=1, nanos=2_000))
    send_values(topic, serialize(value, of_value(topic)))
    wire(
        source=topic.name,
        servers=topic.servers,
        schema_registry=registry.url,
        from_subject=f"{topic.name}-value",
        from_message="Interval",
    )
    (row,) = kafkapy.spark.decode_values(kafkapy.spark.read(spark)).collect()
    assert fields_of(row) == {
        "start_time": datetime.datetime(1970, 1, 1, 0, 0, 1, 2),
        "end_time": None,
    }
    with pytest.raises(
        ConfigError, match=r"no message Order; its messages: google\.type\.Interval"
    ):
        kafkapy.spark.decode_values(kafkapy.spark.read(spark), message="Order")


def test_json_values_in_a_stream_to_another_topic(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    tmp_path: Path,
) -> None:
    source, target = make_topic(), make_topic()
    schema = {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": ["null", "string"]}},
    }
    serialize = JSONSerializer(json.dumps(schema), client)
    send_values(source, *(serialize({"id": i}, of_value(source)) for i in range(3)))
    wire(
        source=source.name,
        target=target.name,
        servers=source.servers,
        schema_registry=registry.url,
        from_subject=f"{source.name}-value",
        checkpoint=tmp_path / "checkpoint",
        once="true",
    )
    run(spark, lambda frame: frame.where("id > 0").selectExpr("id + 40 AS id", "note"))
    values = [
        json.loads(row["value"])
        for row in kafkapy.spark.read(spark, subscribe=target.name).collect()
    ]
    assert values == [{"id": 41}, {"id": 42}]


def test_a_value_that_cannot_be_decoded_ends_the_job_or_is_kept(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    topic = make_topic()
    good = AvroSerializer(client, json.dumps(ORDER))(VALUES, of_value(topic))
    assert good is not None
    foreign = b"\0\0\1\0\0" + good[5:]
    send_values(topic, good, b'{"id": 7}', foreign, good[:9], b"")
    settings = {"source": topic.name, "servers": topic.servers, "schema_registry": registry.url}
    settings["from_subject"] = f"{topic.name}-value"
    wire(**settings, sql="SELECT id FROM records")
    with pytest.raises(PySparkException) as raised:
        run(spark, sql_transform(spark))
    assert refusal(raised.value, is_query=True) == (
        f"The value of {topic.name}-0 at offset 1 cannot be decoded: it does not begin with a zero "
        "byte and a schema's id of four bytes. Its first bytes are 7b 22 69 64 22 3a 20 37 7d"
    )
    wire(**settings, keep_corrupt_records="true")
    frame = kafkapy.spark.decode_values(kafkapy.spark.read(spark))
    rows = frame.orderBy("offset").select("id", "_corrupt_record").collect()
    assert [tuple(row) for row in rows] == [
        (7, None),
        (None, b'{"id": 7}'),
        (None, foreign),
        (None, good[:9]),
        (None, b""),
    ]


def test_a_filter_does_not_decode_twice(
    spark: SparkSession,
    make_topic: MakeTopic,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.register_schema("filtered", Schema(json.dumps(ORDER), "AVRO"))
    frame = kafkapy.spark.read(spark, **make_topic().options)
    decoded = kafkapy.spark.decode_values(frame, "filtered", registry=registry.url)
    decoded.where("id > 3 AND partition = 0").select("day").explain()
    assert capsys.readouterr().out.count("ArrowEvalPython") == 1


def test_a_missing_registry_or_subject_is_named(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, registry: SchemaRegistry
) -> None:
    topic = make_topic()
    wire(source=topic.name, servers=topic.servers)
    frame = kafkapy.spark.read(spark)
    with pytest.raises(ConfigError, match="--schema-registry URL"):
        kafkapy.spark.decode_values(frame, "orders-value")
    with pytest.raises(NotRegistered, match=f"HTTP 404 Subject '{topic.name}-value' not found"):
        kafkapy.spark.decode_values(frame, f"{topic.name}-value", registry=registry.url)
    with pytest.raises(RegistryError, match="refused"):
        kafkapy.spark.decode_values(frame, "orders-value", registry="http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="No subject: give the argument subject"):
        kafkapy.spark.decode_values(frame, registry=registry.url)


def test_fields_of_the_needed_columns(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    """Without the record's place: the message of a fault has none either."""
    topic = make_topic()
    client.register_schema("numbers", Schema('"long"', "AVRO"))
    serialize = AvroSerializer(
        client, '"long"', conf={"subject.name.strategy": lambda *_: "numbers"}
    )
    send_values(topic, serialize(3, of_value(topic)), b"\0")
    wire(
        source=topic.name,
        servers=topic.servers,
        schema_registry=registry.url,
        from_subject="numbers",
    )
    frame = kafkapy.spark.read(spark, columns=["value"])
    rows = kafkapy.spark.decode_values(frame, keep_corrupt_records=True).collect()
    assert [tuple(row) for row in rows] == [(3, None), (None, b"\0")]
    with pytest.raises(PySparkException, match="The value cannot be decoded: it does not begin"):
        kafkapy.spark.decode_values(frame).collect()


def test_keys_that_are_records_and_keys_that_are_not(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
) -> None:
    topic = make_topic()
    of_key = SerializationContext(topic.name, MessageField.KEY)
    key = AvroSerializer(client, json.dumps(KEY))({"user": "ann", "day": AT.date()}, of_key)
    value = AvroSerializer(client, '"long"')(3, of_value(topic))
    topic.send([(0, key, value), (0, None, value), (0, b"plain", None)])
    settings = {"source": topic.name, "servers": topic.servers, "schema_registry": registry.url}
    settings |= {"from_subject": f"{topic.name}-value", "from_key_subject": f"{topic.name}-key"}
    wire(**settings, sql="SELECT key.user FROM records")
    with pytest.raises(PySparkException) as raised:
        run(spark, sql_transform(spark))
    assert refusal(raised.value, is_query=True) == (
        f"The key of {topic.name}-0 at offset 2 cannot be decoded: it does not begin with a zero "
        "byte and a schema's id of four bytes. Its first bytes are 70 6c 61 69 6e"
    )
    wire(**settings, keep_corrupt_records="true")
    keys = kafkapy.spark.decode_keys(kafkapy.spark.read(spark))
    frame = kafkapy.spark.decode_values(keys)
    assert frame.schema.simpleString() == (
        "struct<key:struct<user:string,day:date>,value:bigint,topic:string,partition:int,"
        "offset:bigint,timestamp:timestamp,timestampType:int,_corrupt_key:binary,"
        "_corrupt_record:binary>"
    )
    rows = frame.orderBy("offset").select("key", "value", "_corrupt_key", "_corrupt_record")
    assert [tuple(row) for row in rows.collect()] == [
        (Row(user="ann", day=AT.date()), 3, None, None),
        (None, 3, None, None),
        (None, None, b"plain", None),
    ]


def test_ids_of_schemas_in_headers(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A query reads the headers for the ids, but they are no column of its records."""
    topic = make_topic()
    to_header = {"schema.id.serializer": header_schema_id_serializer}
    rows = []
    for number in (1, 2):
        headers: list[tuple[str, bytes]] = [("trace", b"t")]
        contexts = [
            SerializationContext(topic.name, part, headers)
            for part in (MessageField.KEY, MessageField.VALUE)
        ]
        key = AvroSerializer(client, '"long"', conf=to_header)(number, contexts[0])
        serialize = ProtobufSerializer(interval_pb2.Interval, client, to_header)
        value = interval_pb2.Interval(start_time=Timestamp(seconds=number))
        rows.append((0, key, serialize(value, contexts[1])))
    topic.send(rows, headers)
    settings = {"source": topic.name, "servers": topic.servers, "schema_registry": registry.url}
    settings |= {"from_subject": f"{topic.name}-value", "from_key_subject": f"{topic.name}-key"}
    wire(**settings, from_message="Interval", sql="SELECT * EXCEPT (timestamp) FROM records")
    run(spark, sql_transform(spark))
    lines = capsys.readouterr().out.splitlines()
    assert [word.strip() for word in lines[1].split("|")] == [
        *("", "start_time", "end_time", "key", "topic", "partition", "offset"),
        *("timestampType", ""),
    ]
    frame = kafkapy.spark.read(spark, columns=["key", "value", "headers"])
    decoded = kafkapy.spark.decode_keys(kafkapy.spark.decode_values(frame)).orderBy("key")
    found = decoded.collect()
    assert [(row["start_time"].second, row["key"]) for row in found] == [(1, 1), (2, 2)]
    assert found[0]["headers"] == [Row(key="trace", value=bytearray(b"t"))]
