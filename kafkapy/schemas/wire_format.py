"""The id of a value's schema, as Confluent's serializers write it, and the place of its message.

Values begin with a zero byte and the id in four bytes. With Confluent 8's HeaderSchemaIdSerializer,
a header of the record has a byte of 1 and the GUID of the schema. Of Protobuf values, the place of
the message in the schema follows.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kafkapy.record.varint import append_varint, read_varint

SchemaId = int | UUID
"""The number of a schema in its registry, or its GUID, which is the same in all registries."""

SCHEMA_ID_HEADERS: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The names of the headers with the schema's id of a record's key and value."""

_NUMBER_BYTES: Final = 5
_GUID_BYTES: Final = 17

MessagePath = tuple[int, ...]
"""The place of a message in its schema: (1, 0) is the first in the second."""


class CorruptValue(ValueError):
    """A value does not have the form of its schema; the message says why."""


def split_id(value: bytes, header: bytes | None) -> tuple[SchemaId, bytes] | None:
    """The id of a value's schema, and the rest of the value; None if it has no id. `header` is the
    content of the record's header, which takes precedence."""
    if header is None:
        return _split_number(value)
    if header[:1] == b"\1" and len(header) >= _GUID_BYTES:
        return UUID(bytes=header[1:_GUID_BYTES]), header[_GUID_BYTES:] + value
    found = _split_number(header)
    return None if found is None else (found[0], found[1] + value)


def _split_number(data: bytes) -> tuple[SchemaId, bytes] | None:
    if len(data) < _NUMBER_BYTES or data[0]:
        return None
    return int.from_bytes(data[1:_NUMBER_BYTES], "big"), data[_NUMBER_BYTES:]


def id_bytes(schema_id: SchemaId) -> bytes:
    """The beginning of values with this schema, or of their header."""
    if isinstance(schema_id, UUID):
        return b"\1" + schema_id.bytes
    return b"\0" + schema_id.to_bytes(_NUMBER_BYTES - 1, "big")


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
