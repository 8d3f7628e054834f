"""Varints, number arrays, tagged sections and records."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.primitives import (
    COPY_BELOW,
    FEW,
    ONE_BYTE_UVARINT,
    few_numbers,
    read_numbers,
    read_uvarint,
    skip_tagged_fields,
    tagged_field,
    tagged_fields,
    uvarint,
    write_numbers,
    write_records,
)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_uvarint(value: int, wire: str) -> None:
    assert uvarint(value).hex() == wire
    assert read_uvarint(b"\xee" + bytes.fromhex(wire), 1) == (value, 1 + len(wire) // 2)


def test_one_byte_uvarints_are_uvarints() -> None:
    assert tuple(uvarint(n) for n in range(128)) == ONE_BYTE_UVARINT


def test_uvarint_of_six_bytes_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="5 bytes"):
        read_uvarint(bytes.fromhex("808080808001"), 0)


def test_uvarint_cut_short() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80", 0)


def test_skip_tagged_fields() -> None:
    section = tagged_fields([tagged_field(3, [b"ab", b"c"]), tagged_field(200, [])])
    assert section.hex() == "02" + "0303616263" + "c80100"
    assert skip_tagged_fields(b"?" + section + b"rest", 1) == (2, 1 + len(section))
    assert skip_tagged_fields(b"\0", 0) == (0, 1)


def test_more_tagged_fields_than_any_message_has_are_refused_uncounted() -> None:
    with pytest.raises(ProtocolViolation, match="1025 tagged fields"):
        skip_tagged_fields(uvarint(1025) + b"\0\0" * 1025, 0)


def test_skip_tagged_fields_that_end_after_the_frame() -> None:
    with pytest.raises(ProtocolViolation, match="after the frame"):
        skip_tagged_fields(b"\x01\x00\x05abcd", 0)


@pytest.mark.parametrize("count", [0, 1, FEW - 1, FEW, 200])
def test_numbers(count: int) -> None:
    numbers = list(range(-5, count - 5))
    flexible = write_numbers("h", numbers, True)
    classic = write_numbers("h", numbers, False)
    assert flexible == uvarint(count + 1) + classic[4:]
    assert read_numbers("h", count, classic, 4) == tuple(numbers)
    if count < FEW:
        assert few_numbers("Bh")[count].pack(count + 1, *numbers) == flexible
        assert few_numbers("h")[count].unpack_from(classic, 4) == tuple(numbers)


def test_null_numbers() -> None:
    assert write_numbers("i", None, True) == b"\0"
    assert write_numbers("i", None, False) == b"\xff\xff\xff\xff"


def test_small_records_are_copied_and_big_ones_handed_on() -> None:
    small, big = bytes(COPY_BELOW - 1), bytearray(COPY_BELOW)
    chunks: list[bytes] = [b"a", b"b"]
    parts: list[bytes] = []
    write_records(small, len(small), chunks, parts)
    assert (chunks, parts) == ([b"a", b"b", small], [])
    write_records(big, len(big), chunks, parts)
    assert chunks == []
    assert parts[0] == b"ab" + small
    assert parts[1] is big


def test_records_in_several_buffers() -> None:
    first, second = memoryview(bytes(COPY_BELOW)), memoryview(b"x")
    parts: list[bytes] = []
    write_records([first, second], COPY_BELOW + 1, [], parts)
    assert parts[1] is first
    assert parts[2] is second


def test_null_records_write_nothing() -> None:
    chunks: list[bytes] = []
    write_records(None, -1, chunks, [])
    assert chunks == []
