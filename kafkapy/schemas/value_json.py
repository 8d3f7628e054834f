"""Values of Confluent's serializers as JSON and back, as in Confluent's console tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from kafkapy.schemas.avro_json import from_avro, to_avro
from kafkapy.schemas.avro_schema import AvroSchema
from kafkapy.schemas.json_schema import JsonSchema
from kafkapy.schemas.parsed_schema import InvalidSchema, ParsedSchema
from kafkapy.schemas.protobuf_json import message_fields, message_of_json
from kafkapy.schemas.protobuf_schema import ProtobufSchema
from kafkapy.schemas.registry_client import RegisteredSchema, RegistryClient
from kafkapy.schemas.schema_types import parse_text
from kafkapy.schemas.wire_format import (
    CorruptValue,
    MessagePath,
    SchemaId,
    id_bytes,
    path_bytes,
    split_path,
)

Convert = Callable[[bytes], bytes]


class ValueJson:
    """Decodes values with the schemas of a registry, each of which it asks for once."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry: Final = registry
        self._decoders: Final[dict[SchemaId, Convert]] = {}

    def decode(self, schema_id: SchemaId, payload: bytes) -> bytes:
        """The JSON of a value, which is given without the id of its schema.

        Raises:
            CorruptValue: the value is not of its schema, or the schema cannot be parsed.
            RegistryError: no registry answers, or it does not have the schema.
        """
        decoder = self._decoders.get(schema_id)
        if decoder is None:
            decoder = self._decoders[schema_id] = _decoder(self._registry.of_id(schema_id))
        return decoder(payload)


def _decoder(registered: RegisteredSchema) -> Convert:
    schema = _parse(registered)
    if isinstance(schema, AvroSchema):
        return lambda payload: _compact(from_avro(schema.root, payload))
    if isinstance(schema, ProtobufSchema):
        messages = schema.messages()
        return lambda payload: _from_protobuf(messages, payload)
    return bytes


def encoder(registered: RegisteredSchema) -> Convert:
    """A function from the JSON of a value to its bytes with the schema's id. It raises CorruptValue
    for JSON that is not of the schema. A Protobuf value is the first message of the schema.

    Raises:
        CorruptValue: the schema cannot be parsed.
        ConfigError: the schema has rules for values that are written.
    """
    registered.check_may_write()
    schema = _parse(registered)
    beginning = id_bytes(registered.schema_id)
    if isinstance(schema, ProtobufSchema):
        path, message = next(iter(schema.messages().items()), (None, None))
        if path is None or message is None:
            raise CorruptValue(f"the schema {registered.schema_id} has no message")
        beginning += path_bytes(path)
        return lambda text: beginning + message_of_json(text, message).SerializeToString()
    if isinstance(schema, AvroSchema):
        return lambda text: beginning + to_avro(schema.root, _load(text))
    assert isinstance(schema, JsonSchema)
    return lambda text: beginning + _checked(schema, text)


def _parse(registered: RegisteredSchema) -> ParsedSchema:
    try:
        return parse_text(registered.schema_type, registered.text, registered.references)
    except InvalidSchema as error:
        raise CorruptValue(
            f"the schema {registered.schema_id} cannot be parsed: {error}"
        ) from error


def _load(text: bytes) -> Any:
    """JSON of RFC 8259: in UTF-8, and without NaN."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number of JSON")

    try:
        return json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise CorruptValue(f"it is not JSON: {error}") from error


def _checked(schema: JsonSchema, text: bytes) -> bytes:
    fault = schema.fault(_load(text))
    if fault is not None:
        raise CorruptValue(fault)
    return text


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _from_protobuf(messages: dict[MessagePath, Descriptor], payload: bytes) -> bytes:
    path, content = split_path(payload)
    if path not in messages:
        raise CorruptValue(f"its schema has no message at {list(path)}")
    try:
        message = GetMessageClass(messages[path]).FromString(content)
        found = message_fields(message, always_print_fields_with_no_presence=True)
    except (DecodeError, json_format.Error, TypeError, ValueError) as error:
        raise CorruptValue(f"it is not of its schema: {error}") from error
    return _compact(found)
