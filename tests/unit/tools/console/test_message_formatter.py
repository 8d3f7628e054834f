"""Records to text, to the byte."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console.message_formatter import Message, MessageFormatter

RECORD = Message("t", 3, 42, 1700, "CreateTime", b"k", b"v", [("h", b"1"), ("g", None)])
EVERYTHING = {f"print.{part}": "true" for part in ("timestamp", "partition", "offset")} | {
    "print.headers": "true",
    "print.key": "true",
}


def text(properties: dict[str, str], **changed: Any) -> bytes:
    return MessageFormatter(properties).format(RECORD._replace(**changed))


@pytest.mark.parametrize(
    ("properties", "changed", "expected"),
    [
        ({}, {}, b"v\n"),
        ({}, {"value": None}, b"null\n"),
        ({}, {"value": b"\xff\x00"}, b"\xff\x00\n"),
        ({"null.literal": "-"}, {"value": None}, b"-\n"),
        ({"print.key": "true"}, {}, b"k\tv\n"),
        ({"print.key": "TRUE", "key.separator": "|"}, {"key": None}, b"null|v\n"),
        ({"print.value": "false"}, {}, b""),
        ({"print.value": "false", "print.key": "true"}, {}, b"k\n"),
        ({"line.separator": ";"}, {}, b"v;"),
        (EVERYTHING, {}, b"CreateTime:1700\tPartition:3\tOffset:42\th:1,g:null\tk\tv\n"),
        (EVERYTHING | {"headers.separator": "&"}, {}, b"CreateTime:1700\tPartition:3\tOffset:42"
            b"\th:1&g:null\tk\tv\n"),
        ({"print.timestamp": "true"}, {"timestamp_type": None}, b"NO_TIMESTAMP\tv\n"),
        ({"print.timestamp": "true"}, {"timestamp_type": "LogAppendTime"},
            b"LogAppendTime:1700\tv\n"),
        ({"print.headers": "true"}, {"headers": ()}, b"NO_HEADERS\tv\n"),
    ],
)  # fmt: skip
def test_text(properties: dict[str, str], changed: dict[str, Any], expected: bytes) -> None:
    assert text(properties, **changed) == expected


UUID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", struct.pack(">q", -5), b"-5"),
        ("IntegerDeserializer", struct.pack(">i", 7), b"7"),
        ("ShortDeserializer", struct.pack(">h", 7), b"7"),
        ("DoubleDeserializer", struct.pack(">d", 1.5), b"1.5"),
        ("DoubleDeserializer", struct.pack(">d", 1e7), b"1.0E7"),
        ("FloatDeserializer", struct.pack(">f", 0.1), b"0.1"),
        ("BooleanDeserializer", b"\1", b"true"),
        ("UUIDDeserializer", str(UUID).encode(), str(UUID).encode()),
        ("StringDeserializer", b"a\xff", "a�".encode()),
        ("ByteArrayDeserializer", b"a\xff", b"a\xff"),
    ],
)
def test_deserializers(name: str, raw: bytes, expected: bytes) -> None:
    assert text({"value.deserializer": name}, value=raw) == expected + b"\n"
    keys = {"print.key": "true", "key.deserializer": name}
    assert text(keys, key=raw) == expected + b"\tv\n"
    headers = {"print.headers": "true", "headers.deserializer": name}
    assert text(headers, headers=[("h", raw)]) == b"h:" + expected + b"\tv\n"


@pytest.mark.parametrize(
    ("name", "raw"),
    [("LongDeserializer", b"1234567"), ("BooleanDeserializer", b"x"), ("UUIDDeserializer", b"x")],
)
def test_what_a_deserializer_cannot_read(name: str, raw: bytes) -> None:
    with pytest.raises(ConfigError, match=r"deserializer|Deserializer|UUID"):
        text({"value.deserializer": name}, value=raw)


def test_an_unknown_deserializer_is_named() -> None:
    with pytest.raises(ConfigError, match=r"value\.deserializer x\.Avro is not known"):
        MessageFormatter({"value.deserializer": "x.Avro"})
