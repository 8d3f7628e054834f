"""Keys and values as the dump shows them."""

from __future__ import annotations

import struct

import pytest

from kafkapy.cli.commands.dump_log_segments import STRING_DECODER
from kafkapy.common.errors import ConfigError
from kafkapy.record.batch_header import TimestampType
from kafkapy.record.records import Record
from kafkapy.tools.dump.decoders import (
    UndecodableRecord,
    class_decoder,
    is_text,
    java_text,
    json_text,
)


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 0, TimestampType.CREATE_TIME, key, value, [], -1)


def test_classes_by_old_and_new_names() -> None:
    decoder, notes = class_decoder("kafka.serializer.LongDecoder", "DefaultDecoder")
    assert decoder.decode(record(struct.pack(">q", -5), b"\0\xff")) == ("-5", "00ff")
    assert decoder.decode(record(None, None)) == (None, None)
    assert notes == [
        "kafka.serializer.LongDecoder is deprecated. Please use"
        " org.apache.kafka.tools.api.LongDecoder instead"
    ]
    assert not is_text(decoder)
    assert is_text(class_decoder(STRING_DECODER, "StringDecoder")[0])


def test_classes_of_others_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"com\.acme\.Avro is not known here; known are org"):
        class_decoder("com.acme.Avro", STRING_DECODER)
    with pytest.raises(ConfigError):
        class_decoder("com.acme.LongDecoder", STRING_DECODER)


def test_a_number_of_too_few_bytes() -> None:
    decoder, _ = class_decoder("IntegerDecoder", STRING_DECODER)
    with pytest.raises(UndecodableRecord, match="IntegerDecoder needs 4 bytes, there are 3"):
        decoder.decode(record(b"abc", None))


def test_malformed_text_is_replaced_as_java_does() -> None:
    assert java_text(b"\xed\xa0\x80|\xff\xfe|\xf0\x9f|\xc3\xa9") == "\ufffd|\ufffd\ufffd|\ufffd|é"


def test_json_is_jacksons() -> None:
    assert json_text({"a": 'é"\\u001f\x1f\n\x00'}) == r'{"a":"é\"\\u001f\u001F\n\u0000"}'
