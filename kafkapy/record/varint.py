"""Zigzag varints as records use them: 7 bits a byte, low bits first, at most 10 bytes."""

from __future__ import annotations


def append_varint(out: bytearray, value: int) -> None:
    """Append `value`, an integer of at most 64 bits."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """`(value, position after it)`.

    Raises:
        IndexError: the data ends inside the number.
        ValueError: the number goes on after 10 bytes.
    """
    byte = data[position]
    position += 1
    if byte <= 0x7F:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > 63:
            raise ValueError("a varint is longer than 10 bytes")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), position
