"""Decoders of keys and values for `dump-log-segments`: the interface, and Kafka's classes.

A decoder returns text, an object that is shown as JSON, or None to leave out the field. Kafka:
`DumpLogSegments.MessageParser` and its children.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.record.records import Record

DecodedValue = str | dict[str, Any] | None


class UndecodableRecord(KafkapyError):
    """The chosen decoder cannot read a record."""


class Decoder(Protocol):
    """Reads a record's key and value."""

    def decode(self, record: Record) -> tuple[DecodedValue, DecodedValue]:
        """
        Raises:
            UndecodableRecord: the decoder cannot read the record.
        """
        ...


# Java decodes a surrogate's three bytes to one replacement character, Python to three.
# Patterns are compiled on first use: most runs of a command use none.
_SURROGATE: Final = rb"\xed[\xa0-\xbf][\x80-\xbf]"
_REPLACEMENT: Final = "\ufffd".encode()


def java_text(raw: bytes) -> str:
    """Decode UTF-8 like Java's `new String(bytes, UTF_8)`."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return re.sub(_SURROGATE, _REPLACEMENT, raw).decode(errors="replace")


def _number(form: str, name: str) -> Callable[[bytes], str]:
    layout = struct.Struct(form)

    def read(raw: bytes) -> str:
        if len(raw) < layout.size:
            raise UndecodableRecord(f"{name} needs {layout.size} bytes, there are {len(raw)}")
        return str(layout.unpack_from(raw)[0])

    return read


# By the last part of the class name. Java prints the address of a byte array, not its content.
_CLASSES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "StringDecoder": java_text,
    "LongDecoder": _number(">q", "LongDecoder"),
    "IntegerDecoder": _number(">i", "IntegerDecoder"),
    "DefaultDecoder": bytes.hex,
}
_PACKAGE: Final = "org.apache.kafka.tools.api"
_OLD_PACKAGE: Final = "kafka.serializer"


class ClassDecoder(NamedTuple):
    """A decoder with one function for keys and one for values."""

    key: Callable[[bytes], str]
    value: Callable[[bytes], str]

    def decode(self, record: Record) -> tuple[DecodedValue, DecodedValue]:
        """The key's and the value's text."""
        key = None if record.key is None else self.key(record.key)
        return key, None if record.value is None else self.value(record.value)


def is_text(decoder: Decoder) -> bool:
    """Whether keys and values are shown as UTF-8 text, which has a fast path."""
    return isinstance(decoder, ClassDecoder) and decoder.key is decoder.value is java_text


def class_decoder(key_class: str, value_class: str) -> tuple[ClassDecoder, list[str]]:
    """The decoder, and Kafka's notes on deprecated names, the value's first.

    Raises:
        ConfigError: a class is not one of Kafka's; without a JVM others cannot be loaded.
    """
    value, key = _by_class(value_class), _by_class(key_class)
    return ClassDecoder(key[0], value[0]), [*value[1], *key[1]]


def _by_class(name: str) -> tuple[Callable[[bytes], str], list[str]]:
    package, _, simple = name.rpartition(".")
    function = _CLASSES.get(simple)
    if function is None or package not in (_PACKAGE, _OLD_PACKAGE, ""):
        known = ", ".join(f"{_PACKAGE}.{each}" for each in _CLASSES)
        raise ConfigError(f"The decoder class {name} is not known here; known are {known}")
    if package != _OLD_PACKAGE:
        return function, []
    return function, [f"{name} is deprecated. Please use {_PACKAGE}.{simple} instead"]


_ESCAPE: Final = r"\\(?:u[0-9a-f]{4}|.)"


def json_text(value: object) -> str:
    """JSON in Jackson's form: no blanks, hexadecimal digits of escapes in upper case."""
    # Imported here, because most records need no decoder.
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(_ESCAPE, lambda found: "\\" + found[0][1] + found[0][2:].upper(), text)
