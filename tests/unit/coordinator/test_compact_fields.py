"""The flexible encoding of the coordinators' records."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.compact_fields import (
    CompactReader,
    compact_array,
    compact_bytes,
    compact_string,
    uvarint,
)


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, "00"), (127, "7f"), (128, "8001"), (2**31 - 1, "ffffffff07")]
)
def test_a_length_is_an_unsigned_varint(value: int, encoded: str) -> None:
    assert uvarint(value).hex() == encoded
    assert CompactReader(bytes.fromhex(encoded), "topic").uvarint() == value


def test_strings_and_arrays_have_their_length_plus_one() -> None:
    assert compact_string("ab") == b"\x03ab"
    assert compact_string("") == b"\x01"
    assert compact_string(None) == b"\x00"
    data = compact_array([compact_string("ab"), compact_string("")])
    reader = CompactReader(data, "topic")
    assert reader.compact_array(reader.compact_string) == ["ab", ""]


def test_bytes_have_their_length_plus_one() -> None:
    assert compact_bytes(b"ab") == b"\x03ab"
    assert CompactReader(b"\x03ab", "topic").compact_bytes() == b"ab"


def test_tagged_fields_of_later_versions_are_passed_over() -> None:
    reader = CompactReader(bytes.fromhex("02 00 02 0102 05 00 07"), "topic")
    reader.skip_tags()
    assert reader.i8() == 7


@pytest.mark.parametrize("data", ["", "03 61", "ff ff ff ff ff ff", "00", "02 ff"])
def test_what_cannot_be_a_string_is_corrupt(data: str) -> None:
    with pytest.raises(ApiError) as refusal:
        CompactReader(bytes.fromhex(data), "topic").compact_string()
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE
