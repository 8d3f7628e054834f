"""Keys and values as `dump-log-segments` shows them: by class, or as records of internal topics.

A decoder gives text, or an object that is shown as JSON; None leaves the field out of the line.
Kafka: `DumpLogSegments.MessageParser` and its children.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.record.records import Record
from kafkapy.tools.internal_topics import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_OFFSETS,
    CONSUMER_SUBSCRIPTION,
    GROUP_METADATA,
    TRANSACTION_KEY,
    TRANSACTION_STATES,
    TRANSACTION_VALUE,
)
from kafkapy.tools.record_schema import Malformed, Schema, read_struct, read_version

Shown = str | dict[str, Any] | None


class UndecodableRecord(KafkapyError):
    """A record is not what the chosen decoder reads."""


class Decoder(Protocol):
    """Reads a record's key and value."""

    def decode(self, record: Record) -> tuple[Shown, Shown]:
        """
        Raises:
            UndecodableRecord: the record is none of the decoder's kind.
        """
        ...


# Java decodes a surrogate's three bytes to one replacement character, Python to three.
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT: Final = "\ufffd".encode()


def java_text(raw: bytes) -> str:
    """UTF-8 as `new String(bytes, UTF_8)` reads it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, raw).decode(errors="replace")


def _number(form: str, name: str) -> Callable[[bytes], str]:
    layout = struct.Struct(form)

    def read(raw: bytes) -> str:
        if len(raw) < layout.size:
            raise UndecodableRecord(f"{name} needs {layout.size} bytes, there are {len(raw)}")
        return str(layout.unpack_from(raw)[0])

    return read


# By the last part of the class name. Java shows bytes as an array's address, which says nothing.
_CLASSES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "StringDecoder": java_text,
    "LongDecoder": _number(">q", "LongDecoder"),
    "IntegerDecoder": _number(">i", "IntegerDecoder"),
    "DefaultDecoder": bytes.hex,
}
_PACKAGE: Final = "org.apache.kafka.tools.api"
_OLD_PACKAGE: Final = "kafka.serializer"
STRING_DECODER: Final = f"{_PACKAGE}.StringDecoder"


class ClassDecoder(NamedTuple):
    """A function each for key and value."""

    key: Callable[[bytes], str]
    value: Callable[[bytes], str]

    def decode(self, record: Record) -> tuple[Shown, Shown]:
        """The key's and the value's text."""
        key = None if record.key is None else self.key(record.key)
        return key, None if record.value is None else self.value(record.value)


def is_text(decoder: Decoder) -> bool:
    """Whether keys and values are shown as the UTF-8 text they are: there is a short way then."""
    return isinstance(decoder, ClassDecoder) and decoder.key is decoder.value is java_text


def class_decoder(key_class: str, value_class: str) -> tuple[ClassDecoder, list[str]]:
    """The decoder, and Kafka's notes on names that went out of use, the value's first.

    Raises:
        ConfigError: a class is none of Kafka's; there is no JVM to load others.
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


_DELETE: Final = "<DELETE>"


class OffsetsDecoder:
    """`__consumer_offsets`: every group and offset record as JSON."""

    def decode(self, record: Record) -> tuple[Shown, Shown]:
        """An unknown or broken record is told of in the place of its key."""
        if record.key is None:
            raise UndecodableRecord(
                f"Failed to decode message at offset {record.offset} using offset topic decoder"
                " (message had a missing key)"
            )
        try:
            kind = read_version(record.key)
            if kind not in CONSUMER_OFFSETS:
                return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            key_schema, value_schema = CONSUMER_OFFSETS[kind]
            key = {"type": str(kind), "data": read_struct(key_schema, kind, record.key)}
            if record.value is None:
                return key, _DELETE
            version = read_version(record.value)
            value = read_struct(value_schema, version, record.value)
        except Malformed as error:
            return f"Error at offset {record.offset}, skipping. {error}", None
        if kind == GROUP_METADATA and value["protocolType"] == "consumer":
            for member in value["members"]:
                _open(member, "subscription", CONSUMER_SUBSCRIPTION)
                _open(member, "assignment", CONSUMER_ASSIGNMENT)
        return key, {"version": str(version), "data": value}


def _open(member: dict[str, Any], name: str, schema: Schema) -> None:
    """Replace a member's bytes by what they say; other clients' bytes stay base64."""
    raw = base64.b64decode(member[name])
    try:
        member[name] = read_struct(schema, read_version(raw), raw)
    except Malformed:
        return


class TransactionLogDecoder:
    """`__transaction_state`: a line of Kafka's own for each record."""

    def decode(self, record: Record) -> tuple[Shown, Shown]:
        """The transactional id, and the state of its transaction."""
        if record.key is None:
            raise UndecodableRecord(f"The record at offset {record.offset} has no key")
        try:
            version = read_version(record.key)
            if version > TRANSACTION_KEY.highest:
                return f"unknown::version={version}", None
            found = read_struct(TRANSACTION_KEY, version, record.key)
            key = f"transaction_metadata::transactionalId={found['transactionalId']}"
            if record.value is None:
                return key, _DELETE
            value = read_struct(TRANSACTION_VALUE, read_version(record.value), record.value)
            return key, _transaction_text(value)
        except Malformed as error:
            raise UndecodableRecord(f"The record at offset {record.offset}: {error}") from None


def _transaction_text(value: Mapping[str, Any]) -> str:
    status = value["transactionStatus"]
    if not 0 <= status < len(TRANSACTION_STATES):
        raise Malformed(f"transaction status {status} is not known")
    partitions = ",".join(
        f"{row['topic']}-{partition}"
        for row in value["transactionPartitions"] or ()
        for partition in row["partitionIds"]
    )
    return (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},"
        f"state={TRANSACTION_STATES[status]},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={value['transactionTimeoutMs']}"
    )


_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def json_text(value: object) -> str:
    """JSON as Jackson writes it: no blanks, hexadecimal digits of escapes in upper case."""
    # Not at the top: most records are told as they are.
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPE.sub(lambda found: "\\" + found[0][1] + found[0][2:].upper(), text)
