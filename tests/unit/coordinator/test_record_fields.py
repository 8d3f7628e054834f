"""Fields of the coordinators' records: what is written is read, what cannot be read says so."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.record_fields import RecordReader, bytes_field, string_field


def test_what_is_written_is_read() -> None:
    data = string_field("é") + string_field(None) + bytes_field(b"xy") + b"\xff"
    reader = RecordReader(data, "topic")
    assert (reader.string(), reader.nullable_string()) == ("é", None)
    assert (reader.bytes_(), reader.i8()) == (b"xy", 255)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00", "it ends too early"),
        (b"\x00\x05ab", "a length of 5 does not fit"),
        (b"\xff\xff", "a string is null"),
        (b"\x00\x01\xff", "a string is not UTF-8"),
    ],
)
def test_a_string_that_cannot_be_read_names_its_topic(data: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=f"Malformed topic record: {reason}") as caught:
        RecordReader(data, "topic").string()
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
