"""Renders a `FileDescriptorProto` as .proto source.

Clients send descriptors. Only protoc checks them, in a process of its own: the package protobuf may
end the process for a malformed descriptor, for example for a repeated field with a default.
"""

from __future__ import annotations

import io
import re
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
from google.protobuf.message import DecodeError

from kafkapy.schemas.parsed_schema import InvalidSchema

_FIELD_NUMBER_MAX: Final = 2**29 - 1
_ENUM_NUMBER_MAX: Final = 2**31 - 1

# Fields of descriptors that are words of the source, and what they may be.
_WORDS: Final = ("name", "package", "type_name", "extendee", "input_type", "output_type")
_WORD: Final = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_DEFAULT: Final = re.compile(r"[-+.\w]+", re.ASCII)
_ESCAPED: Final = re.compile(r'([^"\\\n]|\\.)*')
_NO_WORDS: Final = ("options", "source_code_info")

# The name of a custom option may be 64 KB, and may be repeated for each of its values.
_OPTIONS_LENGTH_MAX: Final = 4 << 20


def file_text(file: FileDescriptorProto, pool: DescriptorPool | None) -> str:
    """The source of a file in proto2 or proto3.

    `pool` has the extensions that define the custom options, which are left out without it.

    Raises:
        InvalidSchema: it cannot be rendered. Other errors are errors of the source.
    """
    try:
        _check_words(file)
        return "\n".join(_Renderer(pool, file.syntax == "proto3").file(file)) + "\n"
    except InvalidSchema:
        raise
    except (DecodeError, LookupError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSchema(f"the descriptor is malformed: {reason}") from error


def _check_words(descriptor: Any) -> None:
    """
    Raises:
        InvalidSchema: a name would be something else in the source.
    """
    for field, value in descriptor.ListFields():
        if field.name in _WORDS and value and not _WORD.fullmatch(value):
            raise InvalidSchema(f"{value!r} in the descriptor is not a name")
        if field.message_type and field.name not in _NO_WORDS:
            for each in value if field.is_repeated else (value,):
                _check_words(each)


class _Renderer:
    """Each method yields lines."""

    def __init__(self, pool: DescriptorPool | None, is_proto3: bool) -> None:
        self._pool = pool
        self._is_proto3 = is_proto3
        self._options_text = _LimitedText()

    def file(self, file: FileDescriptorProto) -> Iterator[str]:
        yield f"syntax = {_quoted((file.syntax or 'proto2').encode())};"
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
            if field.name in ("map_entry", "uninterpreted_option") or (
                field.is_extension and self._pool is None
            ):
                continue
            name = f"({field.full_name})" if field.is_extension else field.name
            many = isinstance(value, Iterable) and not isinstance(value, str | bytes)
            for one in value if many else (value,):
                self._options_text.write(name)
                yield f"{name} = {self._option_text(field, one)}"

    def _interpreted(self, options: Any) -> Any:
        """Options as a message of the pool, whose extensions are those of the schema."""
        if self._pool is None:
            return options
        try:
            kind = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:  # no import of descriptor.proto, so no extension either
            return options
        return message_factory.GetMessageClass(kind).FromString(options.SerializeToString())

    def _option_text(self, field: Any, value: Any) -> str:
        if field.message_type:
            start = self._options_text.tell()
            text_format.PrintMessage(value, self._options_text, as_one_line=True)
            self._options_text.seek(start)
            return f"{{ {self._options_text.read().rstrip()} }}"
        if field.enum_type:
            known = field.enum_type.values_by_number.get(value)
            if known is None:
                enum = field.enum_type.full_name
                raise InvalidSchema(
                    f"the option {field.full_name} is {value}, which {enum} does not have"
                )
            return str(known.name)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | bytes):
            return _quoted(value.encode() if isinstance(value, str) else value)
        return str(value)


class _LimitedText(io.StringIO):
    """The text of options."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > _OPTIONS_LENGTH_MAX:
            raise InvalidSchema("its options are too long")
        return super().write(text)


def _by_name(messages: Iterable[DescriptorProto]) -> dict[str, DescriptorProto]:
    return {message.name: message for message in messages}


def _field_options(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        value = field.default_value
        is_text = field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        if field.type == FieldDescriptor.TYPE_BYTES and not _ESCAPED.fullmatch(value):
            raise InvalidSchema(f"{value!r} is not a default of bytes")
        if not is_text and not _DEFAULT.fullmatch(value):
            raise InvalidSchema(f"{value!r} is not a default")
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
    """
    Raises:
        InvalidSchema: the field has no type.
    """
    if not field.type_name and not field.HasField("type"):
        raise InvalidSchema(f"the field {field.name} has no type")
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
