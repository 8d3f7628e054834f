"""One instance of any declared message with every field set, always the same; and its bytes."""

from __future__ import annotations

from typing import Any

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.messages import request_class, response_class
from kafkapy.protocol.schema import Field, Kind, Message, Struct
from tests.harness.protocol.encoding import encode_bytes

VALUES = {
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "bool": True,
    "float64": 0.5,
    "uuid": Uuid(bytes(range(16))),
    "string": "topic",
    "bytes": b"bytes",
    "records": b"records",
}


def all_messages() -> list[tuple[type[Message], int]]:
    """Every request and response class with each of its versions."""
    return [
        (cls, version)
        for key in ApiKey
        for cls in (request_class(key), response_class(key))
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ]


def filled(cls: type[Any], version: int) -> Any:
    """A message that has a value other than the default in each field of `version`."""
    return cls(
        **{
            field.name: filled_field(field, version)
            for field in cls.FIELDS
            if version in field.versions
        }
    )


def filled_field(field: Field, version: int) -> Any:
    """Two elements for an array, else one value."""
    item: Kind[Any] | type[Struct] = field.item
    value = VALUES[item.name] if isinstance(item, Kind) else filled(item, version)
    return [value, value] if field.is_array else value


def over_the_wire(message: Message, version: int) -> Any:
    """The message that a peer reads."""
    data = encode_bytes(message, version)
    decoded, end = decode(type(message), version, data)
    assert end == len(data)
    return decoded
