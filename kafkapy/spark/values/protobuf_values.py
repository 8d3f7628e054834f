"""Decodes Protobuf values. The columns are those of Spark's own `from_protobuf`, except that a
field without presence has its default, and unsigned numbers keep their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.protobuf_json import message_fields, message_of_json
from kafkapy.schemas.protobuf_schema import parse_protobuf_schema
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema, RegistryClient
from kafkapy.schemas.wire_format import CorruptValue, MessagePath, SchemaId, path_bytes, split_path

Convert = Callable[[Any], Any]

_SCALARS: Final[dict[int, pa.DataType]] = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
}


def _same(value: Any) -> Any:
    return value


class _Type(NamedTuple):
    """The Arrow type of a field, the conversion of values to pyarrow's input, and its reverse."""

    arrow: pa.DataType
    convert: Convert = _same
    restore: Convert = _same


class ProtobufReader:
    """Reads values of any version of a subject as rows of one message of one version."""

    def __init__(
        self, schema: RegisteredSchema, registry: RegistryClient, message: str | None
    ) -> None:
        """`message` is the name of the message, with its package or without. The default is the
        first of the schema.

        Raises:
            ConfigError: the schema is not Protobuf's, or has no such message.
        """
        self._registry: Final = registry
        messages = _messages(schema)
        found = messages[_path_of(messages, message, schema.schema_id)]
        self._messages: Final = {schema.schema_id: messages}
        self._name: Final = found.full_name
        self._class: Final = GetMessageClass(found)
        self.arrow_type, self._to_row, _ = _struct(found, ())

    def read(self, schema_id: SchemaId, payload: bytes) -> Any:
        path, content = split_path(payload)
        messages = self._messages.get(schema_id)
        if messages is None:
            messages = self._messages[schema_id] = self._messages_of(schema_id)
        message = messages.get(path)
        if message is None or message.full_name != self._name:
            given = f"no message of its schema {schema_id}"
            given = given if message is None else f"the message {message.full_name}"
            raise CorruptValue(f"it is {given}, not {self._name}")
        try:
            return self._to_row(self._class.FromString(content))
        except (DecodeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise CorruptValue(f"it is not a message {self._name}: {reason}") from error

    def _messages_of(self, schema_id: SchemaId) -> dict[MessagePath, Descriptor]:
        schema = self._registry.of_id(schema_id)
        if schema.schema_type is not SchemaType.PROTOBUF:
            kind = schema.schema_type
            raise CorruptValue(f"its schema {schema_id} is not Protobuf's but {kind}'s")
        try:
            return _messages(schema)
        except ConfigError as error:
            raise CorruptValue(str(error)) from error


class ProtobufWriter:
    """Writes rows as one message of a schema."""

    required: Final[frozenset[str]] = frozenset()

    def __init__(self, schema: RegisteredSchema, message: str | None) -> None:
        """
        Raises:
            ConfigError: the schema is not Protobuf's, or has no such message.
        """
        self.schema_id: Final = schema.schema_id
        messages = _messages(schema)
        path = _path_of(messages, message, schema.schema_id)
        self._path: Final = path_bytes(path)
        self.arrow_type, _, self._to_message = _struct(messages[path], ())

    def write(self, row: dict[str, Any]) -> bytes:
        try:
            return self._path + bytes(self._to_message(row).SerializeToString())
        except (EncodeError, json_format.ParseError, TypeError, ValueError) as error:
            raise CorruptValue(" ".join(str(error).split())) from error


def _messages(schema: RegisteredSchema) -> dict[MessagePath, Descriptor]:
    try:
        return parse_protobuf_schema(schema.text, dict(schema.references)).messages()
    except InvalidSchema as error:
        raise ConfigError(f"schema {schema.schema_id} is not Protobuf: {error}") from error


def _path_of(
    messages: Mapping[MessagePath, Descriptor], wanted: str | None, schema_id: SchemaId
) -> MessagePath:
    """The place of the message with a name, or of the first.

    Raises:
        ConfigError: there is no such message.
    """
    for path, each in messages.items():
        if wanted is None or f".{each.full_name}".endswith(f".{wanted}"):
            return path
    known = ", ".join(each.full_name for each in messages.values()) or "none"
    missing = "message" if wanted is None else f"message {wanted}"
    raise ConfigError(f"schema {schema_id} has no {missing}; its messages: {known}")


def _struct(message: Descriptor, enclosing: tuple[str, ...]) -> _Type:
    """The columns of a message. `enclosing` are the names of the messages around it."""
    fields = {
        field.name: _field(field, (*enclosing, message.full_name)) for field in message.fields
    }
    arrow = pa.struct([(name, each.arrow) for name, each in fields.items()])
    with_presence = {field.name for field in message.fields if field.has_presence}
    converts = [(name, each.convert, name in with_presence) for name, each in fields.items()]
    message_class = GetMessageClass(message)

    def to_row(value: Message) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, convert, may_be_absent in converts:
            if may_be_absent and not value.HasField(name):
                row[name] = None
            else:
                content = getattr(value, name)
                row[name] = content if convert is _same else convert(content)
        return row

    def to_message(row: Mapping[str, Any]) -> Message:
        return message_class(
            **{name: fields[name].restore(each) for name, each in row.items() if each is not None}
        )

    return _Type(arrow, to_row, to_message)


def _field(field: FieldDescriptor, enclosing: tuple[str, ...]) -> _Type:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return _map(_single(key, enclosing), _single(value, enclosing))
    item = _single(field, enclosing)
    return _list(item) if field.is_repeated else item


def _single(field: FieldDescriptor, enclosing: tuple[str, ...]) -> _Type:
    """The type of one value of a field."""
    if field.message_type is not None:
        return _message(field.message_type, enclosing)
    if field.enum_type is not None:
        return _enum(field.enum_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _Type(pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string())
    arrow = _SCALARS[field.cpp_type]
    return _Type(arrow, restore=int) if pa.types.is_decimal(arrow) else _Type(arrow)


def _message(message: Descriptor, enclosing: tuple[str, ...]) -> _Type:
    """A message that contains itself is text: its JSON."""
    message_class = GetMessageClass(message)

    def restored(method: str) -> Convert:
        def restore(value: Any) -> Message:
            found = message_class()
            getattr(found, method)(value)
            return found

        return restore

    if message.full_name == "google.protobuf.Timestamp":
        return _Type(pa.timestamp("us", "UTC"), _to_us, restored("FromDatetime"))
    if message.full_name == "google.protobuf.Duration":
        return _Type(pa.duration("us"), _to_us, restored("FromTimedelta"))
    if _contains_itself(message, message.full_name, set()) or message.full_name in enclosing:
        return _Type(pa.string(), _to_json, lambda text: message_of_json(text, message))
    return _struct(message, enclosing)


def _contains_itself(message: Descriptor, name: str, seen: set[str]) -> bool:
    """Whether a field of a message, or of a message in it, is of the type with this name."""
    for field in message.fields:
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            seen.add(inner.full_name)
            if inner.full_name == name or _contains_itself(inner, name, seen):
                return True
    return False


def _list(item: _Type) -> _Type:
    return _Type(
        pa.list_(item.arrow),
        lambda values: [item.convert(each) for each in values],
        lambda values: [item.restore(_present(each)) for each in values],
    )


def _map(key: _Type, value: _Type) -> _Type:
    return _Type(
        pa.map_(key.arrow, value.arrow),
        lambda entries: [(each, value.convert(entries[each])) for each in entries],
        lambda entries: {
            key.restore(each): value.restore(_present(entries[each])) for each in entries
        },
    )


def _present(value: Any) -> Any:
    if value is None:
        raise CorruptValue("Protobuf has no null in a repeated field or a map")
    return value


def _enum(enum: EnumDescriptor) -> _Type:
    names = {number: each.name for number, each in enum.values_by_number.items()}
    # A number without a name is of a later version.
    return _Type(pa.string(), lambda number: names.get(number) or str(number), _enum_value)


def _enum_value(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def _to_us(value: Any) -> int:
    return int(value.seconds * 1_000_000 + int(value.nanos / 1000))


def _to_json(message: Message) -> str:
    return json.dumps(message_fields(message, preserving_proto_field_name=True))
