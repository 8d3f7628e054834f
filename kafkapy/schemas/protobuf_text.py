"""Renders a `FileDescriptorProto` as .proto source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from google.protobuf import message_factory, text_encoding, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

_FIELD_NUMBER_MAX: Final = 2**29 - 1
_ENUM_NUMBER_MAX: Final = 2**31 - 1


def file_text(file: FileDescriptorProto, pool: DescriptorPool) -> str:
    """The source of a file in proto2 or proto3 whose type names are resolved.

    `pool` has the extensions that define the custom options.
    """
    return "\n".join(_Renderer(pool, file.syntax == "proto3").file(file)) + "\n"


class _Renderer:
    """Each method yields lines."""

    def __init__(self, pool: DescriptorPool, is_proto3: bool) -> None:
        self._pool = pool
        self._is_proto3 = is_proto3

    def file(self, file: FileDescriptorProto) -> Iterator[str]:
        yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        publics, weaks = set(file.public_dependency), set(file.weak_dependency)
        for index, path in enumerate(file.dependency):
            public = "public " if index in publics else ""
            weak = "weak " if index in weaks else ""
            yield f"import {public}{weak}{_quoted(path.encode())};"
        yield from self._option_statements(file.options)
        groups = _group_names(file.extension)
        for message in file.message_type:
            if message.name not in groups:
                yield from self._message(message)
        for enum in file.enum_type:
            yield from self._enum(enum)
        yield from self._extensions(file.extension, _by_name(file.message_type))
        for service in file.service:
            yield from self._service(service)

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        yield f"message {message.name} {{"
        yield from _indented(self._message_body(message))
        yield "}"

    def _message_body(self, message: DescriptorProto) -> Iterator[str]:
        yield from self._option_statements(message.options)
        yield from _reserved(message, _FIELD_NUMBER_MAX, 1)
        for extensions in message.extension_range:
            numbers = _range(extensions.start, extensions.end - 1, _FIELD_NUMBER_MAX)
            yield f"extensions {numbers};"
        siblings = _by_name(message.nested_type)
        oneofs: dict[int, list[FieldDescriptorProto]] = {}
        for field in message.field:
            if field.HasField("oneof_index"):
                oneofs.setdefault(field.oneof_index, []).append(field)
        for field in message.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, siblings)
            elif fields := oneofs.pop(field.oneof_index, None):
                yield from self._oneof(message.oneof_decl[field.oneof_index], fields, siblings)
        groups = _group_names(message.field) | _group_names(message.extension)
        for nested in message.nested_type:
            if not nested.options.map_entry and nested.name not in groups:
                yield from self._message(nested)
        for enum in message.enum_type:
            yield from self._enum(enum)
        yield from self._extensions(message.extension, siblings)

    def _oneof(
        self,
        oneof: OneofDescriptorProto,
        fields: Iterable[FieldDescriptorProto],
        siblings: Mapping[str, DescriptorProto],
    ) -> Iterator[str]:
        yield f"oneof {oneof.name} {{"
        yield from _indented(self._option_statements(oneof.options))
        for field in fields:
            yield from _indented(self._field(field, siblings, label=False))
        yield "}"

    def _field(
        self,
        field: FieldDescriptorProto,
        siblings: Mapping[str, DescriptorProto],
        label: bool = True,
    ) -> Iterator[str]:
        entry = siblings.get(field.type_name.rpartition(".")[2])
        prefix = f"{_name(FieldDescriptorProto.Label, field.label)} "
        if not label or (
            self._is_proto3
            and field.label == FieldDescriptor.LABEL_OPTIONAL
            and not field.proto3_optional
        ):
            prefix = ""
        if field.type == FieldDescriptor.TYPE_GROUP and entry is not None:
            yield f"{prefix}group {entry.name} = {field.number} {{"
            yield from _indented(self._message_body(entry))
            yield "}"
            return
        kind = _type_text(field)
        if entry is not None and entry.options.map_entry and _is_entry_of(entry, field):
            key, value = entry.field
            prefix, kind = "", f"map<{_type_text(key)}, {_type_text(value)}>"
        options = ", ".join([*_field_options(field), *self._options(field.options)])
        options = f" [{options}]" if options else ""
        yield f"{prefix}{kind} {field.name} = {field.number}{options};"

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from _indented(self._option_statements(enum.options))
        yield from _indented(_reserved(enum, _ENUM_NUMBER_MAX, 0))
        for value in enum.value:
            options = ", ".join(self._options(value.options))
            yield f"  {value.name} = {value.number}{f' [{options}]' if options else ''};"
        yield "}"

    def _extensions(
        self, fields: Iterable[FieldDescriptorProto], siblings: Mapping[str, DescriptorProto]
    ) -> Iterator[str]:
        for field in fields:
            yield f"extend {field.extendee} {{"
            yield from _indented(self._field(field, siblings))
            yield "}"

    def _service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from _indented(self._option_statements(service.options))
        for method in service.method:
            sent = ("stream " if method.client_streaming else "") + method.input_type
            returned = ("stream " if method.server_streaming else "") + method.output_type
            call = f"rpc {method.name} ({sent}) returns ({returned})"
            if method.HasField("options"):
                yield f"  {call} {{"
                yield from _indented(_indented(self._option_statements(method.options)))
                yield "  }"
            else:
                yield f"  {call};"
        yield "}"

    def _option_statements(self, options: Any) -> Iterator[str]:
        return (f"option {option};" for option in self._options(options))

    def _options(self, options: Any) -> Iterator[str]:
        for field, value in self._interpreted(options).ListFields():
            if field.name in ("map_entry", "uninterpreted_option"):
                continue
            name = f"({field.full_name})" if field.is_extension else field.name
            many = isinstance(value, Iterable) and not isinstance(value, str | bytes)
            for one in value if many else (value,):
                yield f"{name} = {_option_text(field, one)}"

    def _interpreted(self, options: Any) -> Any:
        """Options as a message of the pool, whose extensions are those of the schema."""
        try:
            kind = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:  # no import of descriptor.proto, so no extension either
            return options
        return message_factory.GetMessageClass(kind).FromString(options.SerializeToString())


def _by_name(messages: Iterable[DescriptorProto]) -> dict[str, DescriptorProto]:
    return {message.name: message for message in messages}


def _option_text(field: Any, value: Any) -> str:
    if field.message_type:
        return f"{{ {text_format.MessageToString(value, as_one_line=True)} }}"
    if field.enum_type:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | bytes):
        return _quoted(value.encode() if isinstance(value, str) else value)
    return str(value)


def _field_options(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        value = field.default_value
        if field.type == FieldDescriptor.TYPE_STRING:
            value = _quoted(value.encode())
        elif field.type == FieldDescriptor.TYPE_BYTES:
            value = f'"{value}"'
        yield f"default = {value}"
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        yield f"json_name = {_quoted(field.json_name.encode())}"


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _type_text(field: FieldDescriptorProto) -> str:
    """The type of a field whose type name is resolved."""
    return field.type_name or _name(FieldDescriptorProto.Type, field.type)


def _is_entry_of(entry: DescriptorProto, field: FieldDescriptorProto) -> bool:
    """Whether a map has this entry. Messages elsewhere may have the same name."""
    return str(entry.name).lower() == f"{field.name.replace('_', '')}entry".lower()


def _group_names(fields: Iterable[FieldDescriptorProto]) -> set[str]:
    groups = (field for field in fields if field.type == FieldDescriptor.TYPE_GROUP)
    return {group.type_name.rpartition(".")[2] for group in groups}


def _reserved(declaration: Any, maximum: int, beyond: int) -> Iterator[str]:
    """The reserved numbers and names. The end of a range is `beyond` its last number."""
    for reserved in declaration.reserved_range:
        yield f"reserved {_range(reserved.start, reserved.end - beyond, maximum)};"
    for name in declaration.reserved_name:
        yield f"reserved {_quoted(name.encode())};"


def _range(start: int, end: int, maximum: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == maximum else end}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _name(kind: Any, number: int) -> str:
    """The name of a type or a label in .proto source."""
    return str(kind.Name(number)).partition("_")[2].lower()


def _quoted(value: bytes) -> str:
    return f'"{text_encoding.CEscape(value, False)}"'
