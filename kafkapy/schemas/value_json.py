"""Values of Confluent's serializers as JSON, as Confluent's console consumers print them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final, cast

import avro.errors
import avro.io
import avro.schema
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from kafkapy.schemas.avro_schema import AvroSchema
from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.protobuf_schema import ProtobufSchema
from kafkapy.schemas.registry_client import RegistryClient
from kafkapy.schemas.schema_types import parse_text
from kafkapy.schemas.wire_format import CorruptValue, Path, split_path

_ITEMS_MAX: Final = 1_000_000
# What Apache Avro's library raises for bytes that are not of the schema.
_MALFORMED: Final = (
    *(avro.errors.AvroException, ValueError, LookupError, TypeError, ArithmeticError),
    RecursionError,
)


class ValueJson:
    """Decodes values with the schemas of a registry, each of which it asks for once."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry: Final = registry
        self._decoders: Final[dict[int, Callable[[bytes], bytes]]] = {}

    def decode(self, schema_id: int, payload: bytes) -> bytes:
        """The JSON of a value, which is given without its header.

        Raises:
            CorruptValue: the value is not of its schema, or the schema cannot be parsed.
            RegistryError: no registry answers, or it does not have the schema.
        """
        decoder = self._decoders.get(schema_id)
        if decoder is None:
            decoder = self._decoders[schema_id] = self._decoder(schema_id)
        return decoder(payload)

    def _decoder(self, schema_id: int) -> Callable[[bytes], bytes]:
        found = self._registry.of_id(schema_id)
        try:
            schema = parse_text(found.schema_type, found.text, found.references)
        except InvalidSchema as error:
            raise CorruptValue(f"its schema {schema_id} cannot be parsed: {error}") from error
        if isinstance(schema, AvroSchema):
            return lambda payload: _from_avro(schema.schema, payload)
        if isinstance(schema, ProtobufSchema):
            messages = schema.messages()
            return lambda payload: _from_protobuf(messages, payload)
        return bytes


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _from_protobuf(messages: dict[Path, Descriptor], payload: bytes) -> bytes:
    path, content = split_path(payload)
    if path not in messages:
        raise CorruptValue(f"its schema has no message at {list(path)}")
    try:
        message = GetMessageClass(messages[path]).FromString(content)
        found = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
    except (DecodeError, TypeError, ValueError) as error:
        raise CorruptValue(f"it is not of its schema: {error}") from error
    return _compact(found)


def _from_avro(schema: avro.schema.Schema, payload: bytes) -> bytes:
    decoder = avro.io.BinaryDecoder(BytesIO(payload))
    try:
        return _compact(_avro_json(schema, decoder))
    except _MALFORMED as error:
        reason = str(error) or type(error).__name__
        raise CorruptValue(f"it is not of its schema: {reason}") from error


def _avro_json(schema: avro.schema.Schema, decoder: avro.io.BinaryDecoder) -> Any:
    """Avro's JSON encoding: a union's value has the name of its type, and bytes are text.

    fastavro would end the process for values that are nested too deeply.
    """
    kind = schema.type
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind](decoder)
    if kind == "fixed":
        return decoder.read(cast(Any, schema).size).decode("latin-1")
    if kind == "enum":
        return cast(Any, schema).symbols[decoder.read_int()]
    if kind == "array":
        items = cast(Any, schema).items
        return [_avro_json(items, decoder) for _ in _items(decoder)]
    if kind == "map":
        values = cast(Any, schema).values
        return {decoder.read_utf8(): _avro_json(values, decoder) for _ in _items(decoder)}
    if kind in ("union", "error_union"):
        branch = cast(Any, schema).schemas[decoder.read_long()]
        value = _avro_json(branch, decoder)
        return None if branch.type == "null" else {getattr(branch, "fullname", branch.type): value}
    return {field.name: _avro_json(field.type, decoder) for field in cast(Any, schema).fields}


def _items(decoder: avro.io.BinaryDecoder) -> Iterator[None]:
    """One element for each item of an array or a map, which are in blocks."""
    total = 0
    while count := decoder.read_long():
        if count < 0:
            decoder.read_long()  # the size in bytes
        total += abs(count)
        if total > _ITEMS_MAX:
            raise ValueError(f"it has more than {_ITEMS_MAX:,} items")
        yield from (None for _ in range(abs(count)))


_PRIMITIVES: Final[dict[str, Callable[[avro.io.BinaryDecoder], Any]]] = {
    "null": lambda _: None,
    "boolean": lambda decoder: decoder.read_boolean(),
    "int": lambda decoder: decoder.read_int(),
    "long": lambda decoder: decoder.read_long(),
    "float": lambda decoder: decoder.read_float(),
    "double": lambda decoder: decoder.read_double(),
    "bytes": lambda decoder: decoder.read_bytes().decode("latin-1"),
    "string": lambda decoder: decoder.read_utf8(),
}
