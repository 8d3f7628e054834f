"""Fields of the coordinators' records in the flexible encoding (KIP-482): lengths are unsigned
varints plus one, and each structure ends with tagged fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.record_fields import RecordReader

T = TypeVar("T")

NO_TAGS: Final = b"\0"
_UUID_BYTES: Final = 16
_VARINT_BITS_MAX: Final = 28


def uvarint(value: int) -> bytes:
    """An unsigned varint: 7 bits a byte, low bits first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: str | None) -> bytes:
    """A string; None is the length 0."""
    if text is None:
        return b"\0"
    data = text.encode()
    return uvarint(len(data) + 1) + data


def compact_bytes(data: bytes) -> bytes:
    """Bytes."""
    return uvarint(len(data) + 1) + data


def compact_array(rows: Iterable[bytes]) -> bytes:
    """An array of encoded rows."""
    encoded = list(rows)
    return uvarint(len(encoded) + 1) + b"".join(encoded)


def tagged_fields(fields: Mapping[int, bytes]) -> bytes:
    """The tagged fields of a structure, by ascending tag."""
    parts = [uvarint(len(fields))]
    for tag, data in fields.items():
        parts += (uvarint(tag), uvarint(len(data)), data)
    return b"".join(parts)


class CompactReader(RecordReader):
    """Reads a value in the flexible encoding. Raises CORRUPT_MESSAGE for unreadable ones."""

    __slots__ = ()

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.i8()
            value |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                return value
            shift += 7
            if shift > _VARINT_BITS_MAX:
                raise self.corrupt("a varint is longer than 5 bytes")

    def compact_string(self) -> str:
        text = self.nullable_compact_string()
        if text is None:
            raise self.corrupt("a string is null")
        return text

    def nullable_compact_string(self) -> str | None:
        size = self.uvarint() - 1
        if size < 0:
            return None
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise self.corrupt("a string is not UTF-8") from error

    def compact_bytes(self) -> bytes:
        return self._take(self.uvarint() - 1)

    def compact_array(self, row: Callable[[], T]) -> list[T]:
        """The rows of an array, each read by `row`."""
        return [row() for _ in range(self.uvarint() - 1)]

    def uuid(self) -> Uuid:
        return Uuid(self._take(_UUID_BYTES))

    def skip_tags(self) -> None:
        """Skip the tagged fields at the end of a structure: later versions may add some."""
        self.tags()

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a structure, by tag."""
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}
