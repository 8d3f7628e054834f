"""The beginning of values that Confluent's serializers write: a zero byte, the id of the schema in
four bytes and, for Protobuf, the place of the message in its schema."""

from __future__ import annotations

from typing import Final

from kafkapy.record.varint import append_varint, read_varint

_HEADER_BYTES: Final = 5

MessagePath = tuple[int, ...]
"""The place of a message in its schema: (1, 0) is the first in the second."""


class CorruptValue(ValueError):
    """A value does not have the form of its schema; the message says why."""


def split_header(value: bytes) -> tuple[int, bytes] | None:
    """The id of a value's schema, and the rest of the value; None if it has no header."""
    if len(value) < _HEADER_BYTES or value[0]:
        return None
    return int.from_bytes(value[1:_HEADER_BYTES], "big"), value[_HEADER_BYTES:]


def header(schema_id: int) -> bytes:
    """The header of values with this schema."""
    return b"\0" + schema_id.to_bytes(_HEADER_BYTES - 1, "big")


def split_path(payload: bytes) -> tuple[MessagePath, bytes]:
    """The place of the message, and its bytes.

    Raises:
        CorruptValue: the place is incomplete.
    """
    count, position = _number(payload, 0)
    if count == 0:  # short for [0]
        return (0,), payload[position:]
    if not 0 < count <= len(payload):
        raise CorruptValue(f"its message has a path of {count} numbers")
    path = []
    for _ in range(count):
        number, position = _number(payload, position)
        path.append(number)
    return tuple(path), payload[position:]


def _number(payload: bytes, position: int) -> tuple[int, int]:
    try:
        return read_varint(payload, position)
    except (IndexError, ValueError) as error:
        raise CorruptValue("it ends in the path of its message") from error


def path_bytes(path: MessagePath) -> bytes:
    """The bytes of a place, as in `split_path`."""
    found = bytearray()
    for number in (0,) if path == (0,) else (len(path), *path):
        append_varint(found, number)
    return bytes(found)
