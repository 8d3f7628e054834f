"""Decodes structs of Kafka's internal topics and embedded protocols to JSON, with schema tables.

A type is the name of a primitive, a list of one type (an array), a tuple of `Field`s (a struct), or
one of these in `Nullable`. Names and order are those of Kafka's message files; values are those of
Kafka's `JsonConverter` classes: bytes are base64, ids have 22 characters.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Union

from kafkapy.common.uuid import Uuid

Type = Union[str, list[Any], tuple["Field", ...], "Nullable"]


class Nullable(NamedTuple):
    """A string, bytes, array or struct that may be null."""

    type: Any


class Field(NamedTuple):
    """A named field, in the versions `since` to `until`. One with a tag is optional (KIP-482)."""

    name: str
    type: Type
    since: int = 0
    until: int = 0x7FFF
    tag: int | None = None


class Schema(NamedTuple):
    """The versions 0 to `highest` of one struct; from `flexible` on lengths are varints."""

    fields: tuple[Field, ...]
    highest: int = 0
    flexible: int = 0x7FFF


class Malformed(ValueError):
    """Bytes that do not match the schema."""


_NUMBERS: Final[Mapping[str, struct.Struct]] = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}


_VARINT_BITS: Final = 35


def read_version(data: bytes) -> int:
    """The i16 that begins every key and value.

    Raises:
        Malformed: the data has fewer than two bytes.
    """
    return int(_Reader(data, flexible=False).number("int16"))


def read_struct(schema: Schema, version: int, data: bytes, start: int = 2) -> dict[str, Any]:
    """The struct at `start` of `data`. Later bytes are ignored, as in Kafka.

    Raises:
        Malformed: the bytes do not match, or the schema does not have the version.
    """
    if not 0 <= version <= schema.highest:
        raise Malformed(f"version {version} is not known")
    reader = _Reader(data, flexible=version >= schema.flexible, position=start)
    return reader.struct(schema.fields, version)


class _Reader:
    def __init__(self, data: bytes, *, flexible: bool, position: int = 0) -> None:
        self._data = data
        self._flexible = flexible
        self._position = position

    def struct(self, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
        found = {
            field.name: self.value(field.type, version)
            for field in fields
            if field.tag is None and field.since <= version <= field.until
        }
        if not self._flexible:
            return found
        found |= self._tagged_fields({field.tag: field for field in fields}, version)
        return {field.name: found[field.name] for field in fields if field.name in found}

    def _tagged_fields(self, known: Mapping[int | None, Field], version: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            end = self._position + size
            if tag in known:
                found[known[tag].name] = self.value(known[tag].type, version)
            self._position = end
        return found

    def value(self, kind: Type, version: int, *, nullable: bool = False) -> Any:
        if isinstance(kind, Nullable):
            return self.value(kind.type, version, nullable=True)
        if isinstance(kind, tuple):
            # A nullable struct is written behind a byte that is negative for null (KIP-893).
            is_null = nullable and self.number("int8") < 0
            return None if is_null else self.struct(kind, version)
        if isinstance(kind, list):
            count = self._length("int32", nullable)
            if count is None:
                return None
            self._check(count)  # every element has at least one byte
            return [self.value(kind[0], version) for _ in range(count)]
        if kind in _NUMBERS:
            return self.number(kind)
        if kind == "uuid":
            return str(Uuid(self._take(16)))
        length = self._length("int16" if kind == "string" else "int32", nullable)
        if length is None:
            return None
        raw = self._take(length)
        return raw.decode(errors="replace") if kind == "string" else base64.b64encode(raw).decode()

    def number(self, kind: str) -> int:
        form = _NUMBERS[kind]
        return int(form.unpack(self._take(form.size))[0])

    def _length(self, kind: str, nullable: bool) -> int | None:
        length = self._varint() - 1 if self._flexible else self.number(kind)
        if length >= 0:
            return length
        if nullable and length == -1:
            return None
        raise Malformed("a field that may not be null has no length")

    def _varint(self) -> int:
        # At most five bytes, as in Kafka: to decode a megabyte of 0xff would take a minute.
        value = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("a varint is too long")

    def _take(self, size: int) -> bytes:
        self._check(size)
        start = self._position
        self._position += size
        return self._data[start : self._position]

    def _check(self, size: int) -> None:
        if not 0 <= size <= len(self._data) - self._position:
            raise Malformed(f"{size} bytes do not fit")
