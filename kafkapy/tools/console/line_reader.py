"""Parses lines of text as records: the console producer's reader (`LineMessageReader`).

    h1:v1,h2:v2<headers.delimiter>key<key.separator>value

Bytes are not decoded, so input that is not UTF-8 is sent unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS

Headers = list[tuple[str, bytes | None]]
Encode = Callable[[bytes], bytes]


class Line(NamedTuple):
    """One record to send."""

    key: bytes | None
    value: bytes | None
    headers: Headers


_SEPARATORS: Final = (
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "key.separator",
    "null.marker",
)
_CLASSES: Final = (
    "kafka.tools.ConsoleProducer$LineMessageReader",
    "org.apache.kafka.tools.LineMessageReader",
)
"""The names of Kafka's reader, in 3.9 and in 4."""
REGISTRY_CLASSES: Final = (
    "io.confluent.kafka.formatter.AvroMessageReader",
    "io.confluent.kafka.formatter.protobuf.ProtobufMessageReader",
    "io.confluent.kafka.formatter.json.JsonSchemaMessageReader",
)
"""Confluent's readers, of values with schemas."""


def check_reader_class(name: str) -> None:
    """Check the class of the line reader. Lines read by another class would be wrong records.

    Raises:
        ConfigError: it is neither Kafka's own nor one of Confluent's.
    """
    known = (*_CLASSES, *REGISTRY_CLASSES)
    if name not in known:
        raise ConfigError(f"Line reader {name} is not known; known are: {', '.join(known)}")


class LineReader:
    """Parses lines by the reader properties of `kafka-console-producer`."""

    def __init__(
        self,
        properties: Mapping[str, str],
        encode_key: Encode | None = None,
        encode_value: Encode | None = None,
    ) -> None:
        """`encode_key` and `encode_value` make a key and a value of their text, unless it is null.

        Raises:
            ConfigError: two separators are equal, or one is not a regular expression.
        """
        self._encode_key = encode_key
        self._encode_value = encode_value
        self._parse_key = _is_true(properties, "parse.key")
        self._parse_headers = _is_true(properties, "parse.headers")
        self._ignore_error = _is_true(properties, "ignore.error")
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._headers_delimiter = properties.get("headers.delimiter", "\t").encode()
        self._header_key_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null_marker = None if marker is None else marker.encode()
        separator = properties.get("headers.separator", ",")
        self._refuse_equal(properties, separator)
        try:
            # Kafka treats only this separator as a regular expression.
            self._headers_separator = re.compile(separator.encode())
        except PATTERN_ERRORS as error:
            raise ConfigError(f"headers.separator '{separator}': {error}") from None

    def read(self, line: bytes, number: int) -> Line:
        """Parse one line, without its end. `number` counts from 1.

        Raises:
            ConfigError: a separator is missing and errors are not ignored, or the key or the value
                is not of its schema; with the line.
        """
        headers: Headers = []
        rest = line
        if self._parse_headers:
            text, rest = self._split(
                line, self._headers_delimiter, "headers delimiter", number, line
            )
            if text is not None and text != self._null_marker:
                headers = self._headers(text, number)
        key: bytes | None = None
        if self._parse_key:
            key, rest = self._split(rest, self._key_separator, "key separator", number, line)
        return Line(
            self._encoded(self._null_if_marker(key), self._encode_key, number),
            self._encoded(self._null_if_marker(rest), self._encode_value, number),
            headers,
        )

    def _encoded(self, text: bytes | None, encode: Encode | None, number: int) -> bytes | None:
        if text is None or encode is None:
            return text
        try:
            return encode(text)
        except ConfigError as error:
            raise ConfigError(f"Line number {number}: {error}") from None

    def _split(
        self, text: bytes, separator: bytes, separator_name: str, number: int, line: bytes
    ) -> tuple[bytes | None, bytes]:
        """Split at the first separator."""
        before, found, after = _cut(text, separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, text
        shown = line.decode(errors="replace")
        raise ConfigError(f"No {separator_name} found on line number {number}: '{shown}'")

    def _headers(self, text: bytes, number: int) -> Headers:
        return [self._header(pair, number) for pair in _split(self._headers_separator, text)]

    def _header(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        key, found, value = _cut(pair, self._header_key_separator)
        shown = pair.decode(errors="replace")
        if not found:
            if self._ignore_error:
                return shown, None
            raise ConfigError(
                f"No header key separator found in pair '{shown}' on line number {number}"
            )
        if key == self._null_marker:
            marker = key.decode(errors="replace")
            raise ConfigError(
                f"Header keys should not be equal to the null marker '{marker}' as they can't be "
                "null"
            )
        return key.decode(errors="replace"), self._null_if_marker(value)

    def _null_if_marker(self, field: bytes | None) -> bytes | None:
        return None if field == self._null_marker else field

    def _refuse_equal(self, properties: Mapping[str, str], headers_separator: str) -> None:
        """Check that the used separators differ from each other, and from the null marker."""
        used = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": headers_separator.encode(),
            "headers.key.separator": self._header_key_separator,
        }
        if not self._parse_headers:
            used.clear()
        if self._parse_key:
            used["key.separator"] = self._key_separator
        if self._null_marker is not None:
            used["null.marker"] = self._null_marker
        names = [name for name in _SEPARATORS if name in used]
        for i, name in enumerate(names):
            for other in names[i + 1 :]:
                # Headers are cut off before the key separator is searched: these may be equal.
                may_equal = {name, other} == {"headers.delimiter", "key.separator"}
                if used[name] == used[other] and not may_equal:
                    raise ConfigError(f"{name} and {other} may not be equal")


def _cut(text: bytes, separator: bytes) -> tuple[bytes, bool, bytes]:
    """Cut at the first separator. An empty separator is found at the beginning, as in Java."""
    if not separator:
        return b"", True, text
    before, found, after = text.partition(separator)
    return before, bool(found), after


def _split(separator: re.Pattern[bytes], text: bytes) -> list[bytes]:
    """Split as Java does. The result has no groups of the separator, no empty part before an empty
    match at the beginning, and no empty parts at the end.
    """
    parts, start = [], 0
    for found in separator.finditer(text):
        if found.end() > 0:
            parts.append(text[start : found.start()])
            start = found.end()
    if not parts:
        return [text]
    parts.append(text[start:])
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "false").strip().lower() == "true"
