"""Formats records as lines of text, for the console consumer (`DefaultMessageFormatter`)."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import real

Deserializer = Callable[[bytes], bytes]


class Message(NamedTuple):
    """A consumed record. `timestamp_type` is None without a timestamp. `headers` is None if they
    cannot be read.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] | None
    delivery_count: int | None = None
    """The delivery count, if a share group delivers the record."""

    def read_headers(self) -> Sequence[tuple[str, bytes | None]]:
        """The headers.

        Raises:
            ConfigError: they cannot be read.
        """
        if self.headers is None:
            where = f"{self.topic}-{self.partition} at offset {self.offset}"
            raise ConfigError(f"{where}: the name of a header is not UTF-8")
        return self.headers


def _number(layout: str, text: Callable[[struct.Struct, Any], str]) -> Deserializer:
    known = struct.Struct(layout)

    def read(raw: bytes) -> bytes:
        if len(raw) != known.size:
            raise ConfigError(
                f"Size of data received by the deserializer is not {known.size} but {len(raw)}"
            )
        (value,) = known.unpack(raw)
        return text(known, value).encode()

    return read


def _whole(layout: struct.Struct, number: int) -> str:
    return str(number)


def _boolean(raw: bytes) -> bytes:
    if raw not in (b"\0", b"\1"):
        raise ConfigError("Unexpected byte received by BooleanDeserializer")
    return b"true" if raw == b"\1" else b"false"


def _string(raw: bytes) -> bytes:
    return raw.decode(errors="replace").encode()


def _uuid(raw: bytes) -> bytes:
    try:
        return str(uuid.UUID(raw.decode())).encode()
    except ValueError:
        raise ConfigError("Error parsing data into UUID") from None


# By the class name without its package, `org.apache.kafka.common.serialization`.
_DESERIALIZERS: Final[dict[str, Deserializer]] = {
    "StringDeserializer": _string,
    "ByteArrayDeserializer": bytes,
    "BytesDeserializer": bytes,
    "ByteBufferDeserializer": bytes,
    "ShortDeserializer": _number(">h", _whole),
    "IntegerDeserializer": _number(">i", _whole),
    "LongDeserializer": _number(">q", _whole),
    "FloatDeserializer": _number(">f", real),
    "DoubleDeserializer": _number(">d", real),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
}


SchemaDecoder = Callable[[str, bytes, Message], bytes]
"""Decodes the "key" or the "value" of a record by its schema."""

REGISTRY_DESERIALIZERS: Final = (
    *("KafkaAvroDeserializer", "KafkaProtobufDeserializer", "KafkaJsonSchemaDeserializer"),
)
"""Confluent's, for the types of schemas. They need `schema.registry.url`."""


class MessageFormatter:
    """Joins the chosen parts of a record with `key.separator`, and appends `line.separator`."""

    def __init__(
        self, properties: Mapping[str, str], registry: SchemaDecoder | None = None
    ) -> None:
        """`registry` is the default of keys and values.

        Raises:
            ConfigError: a deserializer is unknown.
        """
        self._timestamp = _is_true(properties, "print.timestamp")
        self._partition = _is_true(properties, "print.partition")
        self._offset = _is_true(properties, "print.offset")
        self._delivery = _is_true(properties, "print.delivery")
        self._headers = _is_true(properties, "print.headers")
        self._key = _is_true(properties, "print.key")
        self._value = _is_true(properties, "print.value", "true")
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._decoders: dict[str, SchemaDecoder] = {}
        self._deserializers: dict[str, Deserializer | None] = {}
        for part in ("key", "value"):
            if registry is not None and _has_schema(properties, part):
                self._decoders[part] = registry
            else:
                self._deserializers[part] = _deserializer(properties, f"{part}.deserializer")
        self._read_header = _deserializer(properties, "headers.deserializer")

    def format(self, message: Message) -> bytes:
        """The text of one record; empty if no part is chosen.

        Raises:
            ConfigError: a deserializer cannot read its part.
        """
        parts = []
        if self._timestamp:
            kind = message.timestamp_type
            stamp = "NO_TIMESTAMP" if kind is None else f"{kind}:{message.timestamp}"
            parts.append(stamp.encode())
        if self._partition:
            parts.append(b"Partition:%d" % message.partition)
        if self._offset:
            parts.append(b"Offset:%d" % message.offset)
        if self._delivery:
            count = message.delivery_count
            parts.append(b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count)
        if self._headers:
            parts.append(self._format_headers(message.read_headers()))
        if self._key:
            parts.append(self._format_part("key", message.key, message))
        if self._value:
            parts.append(self._format_part("value", message.value, message))
        return self._separator.join(parts) + self._line_separator if parts else b""

    def _format_headers(self, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
        pairs = [k.encode() + b":" + self._text(v, self._read_header) for k, v in headers]
        return self._headers_separator.join(pairs) if pairs else b"NO_HEADERS"

    def _format_part(self, part: str, raw: bytes | None, message: Message) -> bytes:
        decode = self._decoders.get(part)
        if decode is None:
            return self._text(raw, self._deserializers[part])
        return self._null if raw is None else decode(part, raw, message)

    def _text(self, raw: bytes | None, read: Deserializer | None) -> bytes:
        given = self._null if raw is None else raw
        return given if read is None else read(given)


def _has_schema(properties: Mapping[str, str], part: str) -> bool:
    """Whether a part is decoded by its schema, if there is a registry."""
    wanted = properties.get(f"{part}.deserializer")
    return not wanted or wanted.rpartition(".")[2] in REGISTRY_DESERIALIZERS


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    wanted = properties.get(name)
    if not wanted:
        return None
    found = _DESERIALIZERS.get(wanted.rpartition(".")[2])
    if found is None:
        raise ConfigError(f"{name} {wanted} is not known; known are: {', '.join(_DESERIALIZERS)}")
    return found


def _is_true(properties: Mapping[str, str], name: str, default: str = "false") -> bool:
    return properties.get(name, default).strip().lower() == "true"
