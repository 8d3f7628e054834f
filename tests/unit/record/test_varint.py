"""Zigzag varints: the bytes, the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.record.varint import append_varint, read_varint


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_known_values(value: int, encoded: str) -> None:
    out = bytearray()
    append_varint(out, value)
    assert out.hex() == encoded
    assert read_varint(b"\xaa" + bytes(out) + b"\x00", 1) == (value, 1 + len(out))


@given(st.integers(-(2**63), 2**63 - 1))
def test_round_trip(value: int) -> None:
    out = bytearray()
    append_varint(out, value)
    assert read_varint(bytes(out), 0) == (value, len(out))


def test_a_number_that_does_not_end_is_refused() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        read_varint(b"\x80" * 10 + b"\x01", 0)
