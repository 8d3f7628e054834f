"""Jute, ZooKeeper's serialization: big-endian numbers, counted bytes and strings, vectors.

A count of -1 is null. Null strings and vectors are read as empty ones: no request or reply gives
them another meaning. Null bytes stay None, because a znode's data may be null.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kafkapy.common.errors import KafkapyError

T = TypeVar("T")
Row = TypeVar("Row", bound=tuple[Any, ...])

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_NULL: Final = _INT.pack(-1)


class Malformed(KafkapyError):
    """The bytes do not follow the protocol."""


class Reader:
    """A position in bytes that were received."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        """The next fixed-size fields.

        Raises:
            Malformed: fewer bytes are left.
        """
        try:
            values = form.unpack_from(self.data, self.position)
        except struct.error:
            raise Malformed(f"The data ends at byte {len(self.data)}, inside a field") from None
        self.position += form.size
        return values

    def at_end(self) -> bool:
        """Whether everything is read."""
        return self.position >= len(self.data)


class Codec(NamedTuple, Generic[T]):
    """A type of field: its decoder and its encoder."""

    read: Callable[[Reader], T]
    write: Callable[[bytearray, T], None]


def _read_int(reader: Reader) -> int:
    value: int = reader.unpack(_INT)[0]
    return value


def _read_long(reader: Reader) -> int:
    value: int = reader.unpack(_LONG)[0]
    return value


def _read_bool(reader: Reader) -> bool:
    if reader.at_end():
        raise Malformed("The data ends before a boolean")
    value = reader.data[reader.position] == 1
    reader.position += 1
    return value


def _read_buffer(reader: Reader) -> bytes | None:
    size = _read_int(reader)
    if size == -1:
        return None
    end = reader.position + size
    if size < 0 or end > len(reader.data):
        raise Malformed(
            f"{size} bytes are announced, {len(reader.data) - reader.position} are left"
        )
    value = bytes(reader.data[reader.position : end])
    reader.position = end
    return value


def _read_string(reader: Reader) -> str:
    # As in Java, invalid UTF-8 becomes U+FFFD, which no path may contain.
    return (_read_buffer(reader) or b"").decode(errors="replace")


def _write_int(out: bytearray, value: int) -> None:
    out += _INT.pack(value)


def _write_long(out: bytearray, value: int) -> None:
    out += _LONG.pack(value)


def _write_bool(out: bytearray, value: bool) -> None:
    out.append(value)


def _write_buffer(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += _NULL
    else:
        out += _INT.pack(len(value))
        out += value


def _write_string(out: bytearray, value: str) -> None:
    _write_buffer(out, value.encode())


INT: Final = Codec(_read_int, _write_int)
LONG: Final = Codec(_read_long, _write_long)
BOOL: Final = Codec(_read_bool, _write_bool)
BUFFER: Final = Codec(_read_buffer, _write_buffer)
STRING: Final = Codec(_read_string, _write_string)


def vector(item: Codec[T]) -> Codec[tuple[T, ...]]:
    """A counted list."""

    def read(reader: Reader) -> tuple[T, ...]:
        count = _read_int(reader)
        if count < -1:
            raise Malformed(f"{count} items are announced")
        return tuple([item.read(reader) for _ in range(count)])

    def write(out: bytearray, value: Sequence[T]) -> None:
        out += _INT.pack(len(value))
        for each in value:
            item.write(out, each)

    return Codec(read, write)


def record(kind: type[Row], *fields: Codec[Any]) -> Codec[Row]:
    """The fields of a NamedTuple, one after the other."""
    readers = [field.read for field in fields]
    writers = [field.write for field in fields]

    def read(reader: Reader) -> Row:
        return kind(*[read_field(reader) for read_field in readers])

    def write(out: bytearray, value: Row) -> None:
        for write_field, each in zip(writers, value, strict=True):
            write_field(out, each)

    return Codec(read, write)


def packed(kind: type[Row], form: str) -> Codec[Row]:
    """A NamedTuple of fixed-size numbers, as one `struct`."""
    layout = struct.Struct(form)

    def read(reader: Reader) -> Row:
        return kind(*reader.unpack(layout))

    def write(out: bytearray, value: Row) -> None:
        out += layout.pack(*value)

    return Codec(read, write)


def encode(codec: Codec[T], value: T) -> bytes:
    """The bytes of one value."""
    out = bytearray()
    codec.write(out, value)
    return bytes(out)
