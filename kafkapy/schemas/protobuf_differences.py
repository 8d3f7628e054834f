"""The rules that decide whether a Protobuf schema can read the data of another one.

They are those of Confluent's Schema Registry: messages are matched by name, fields by number, and
changes of enums are compatible. Changes that Protobuf's wire format allows but that clients cannot
handle, such as another package or a removed message, are incompatible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from kafkapy.schemas.parsed_schema import REASONS_MAX, Budget
from kafkapy.schemas.protobuf_compiler import MAIN_FILE

# Types of one group have the same encoding.
_SCALAR_GROUPS: Final = (
    ("int32", "int64", "uint32", "uint64", "bool", "enum"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)
_GROUP_OF: Final = {name: i for i, names in enumerate(_SCALAR_GROUPS) for name in names}
_STRINGS: Final = _GROUP_OF["string"]

# The bytes of a descriptor that take as long as a comparison of two types. A message may be
# compared with those of many packages.
_BYTES_OF_A_COMPARISON: Final = 100


@dataclass(frozen=True)
class _Field:
    number: int
    type: str
    label: str | None  # None if the source declares none
    oneof: str | None
    message: Descriptor | None
    enum: EnumDescriptor | None

    @cached_property
    def entry(self) -> tuple[_Field, _Field] | None:
        """The key and the value of a map."""
        if self.message is None or not self.message.GetOptions().map_entry:
            return None
        fields = _fields(self.message, _descriptor(self.message))
        return fields[1], fields[2]

    @property
    def kind(self) -> str:
        if self.type == "group":
            return "group"
        if self.type == "message":
            return "map" if self.entry else "message"
        return "scalar"

    @property
    def type_name(self) -> str:
        if self.entry:
            return f"map<{', '.join(part.type_name for part in self.entry)}>"
        if self.message is not None:
            return _local_name(self.message)
        if self.enum is not None:
            return _local_name(self.enum)
        return self.type


def incompatibilities(writer: FileDescriptor, reader: FileDescriptor, budget: Budget) -> list[str]:
    """The reasons why the messages of `reader` cannot read data of those of `writer`.

    Raises:
        RecursionError: imported messages are nested too deeply.
        TooManyComparisons: there are too many combinations of messages.
    """
    reasons = []
    if writer.package != reader.package:
        reasons.append(f"the package changed from {_quoted(writer)} to {_quoted(reader)}")
    reasons += _Comparison(budget).types(
        writer.message_types_by_name.values(), reader.message_types_by_name.values()
    )
    return list(dict.fromkeys(reasons))


def _quoted(file: FileDescriptor) -> str:
    return f"'{file.package}'" if file.package else "none"


class _Comparison:
    """The methods return reasons, and take the writer's side first."""

    def __init__(self, budget: Budget) -> None:
        self._compared: dict[tuple[str, str], list[str]] = {}
        self._budget = budget

    def types(self, writers: Iterable[Descriptor], readers: Iterable[Descriptor]) -> Iterator[str]:
        by_name = {reader.name: reader for reader in readers}
        writers = list(writers)
        groups = _groups(writers[0].containing_type) if writers else ()
        for writer in writers:
            if writer.GetOptions().map_entry or writer.name in groups:
                continue
            if writer.name in by_name:
                yield from self._messages(writer, by_name[writer.name])
            else:
                yield f"message {_local_name(writer)}: the message was removed"

    def _messages(self, writer: Descriptor, reader: Descriptor) -> list[str]:
        """The reasons, each once. Imported messages may contain each other in many ways."""
        pair = (writer.full_name, reader.full_name)
        if pair not in self._compared:
            self._compared[pair] = []
            # Each message that has fields of these repeats their reasons.
            reasons = islice(self._message_reasons(writer, reader), REASONS_MAX)
            self._compared[pair] = list(dict.fromkeys(reasons))
        return self._compared[pair]

    def _message_reasons(self, writer: Descriptor, reader: Descriptor) -> Iterator[str]:
        name = f"message {_local_name(writer)}"
        written, read = self._fields_of(writer), self._fields_of(reader)
        yield from _oneof_reasons(name, reader, written, read)
        for number in sorted(written.keys() | read.keys()):
            path = f"{name}, field {number}"
            old, new = written.get(number), read.get(number)
            if old and new:
                yield from self._fields(path, old, new)
            if new is None and old and old.label == "required":
                yield f"{path}: the required field was removed"
            if new and new.label == "required" and (old is None or old.oneof):
                yield f"{path}: a required field was added"
        yield from self.types(writer.nested_types, reader.nested_types)

    def _fields_of(self, message: Descriptor) -> dict[int, _Field]:
        descriptor = _descriptor(message)
        self._budget.spend(descriptor.ByteSize() / _BYTES_OF_A_COMPARISON)
        return _fields(message, descriptor)

    def _fields(self, path: str, writer: _Field, reader: _Field) -> Iterator[str]:
        changed = f"{path}: the type changed from {writer.type_name} to {reader.type_name}"
        if writer.kind != reader.kind:
            yield changed
        elif writer.kind == "scalar":
            group = _GROUP_OF[writer.type]
            labels = (writer.label, reader.label)
            if group != _GROUP_OF[reader.type]:
                yield changed
            elif None not in labels and labels[0] != labels[1] and group != _STRINGS:
                yield f"{path}: the label changed from {labels[0]} to {labels[1]}"
        elif writer.entry and reader.entry:
            for part, old, new in zip(("key", "value"), writer.entry, reader.entry, strict=True):
                yield from self._fields(f"{path}, {part} of the map", old, new)
        elif writer.message is not None and reader.message is not None:
            if writer.type_name != reader.type_name:
                yield changed
            elif writer.kind == "group" or not _are_local(writer.message, reader.message):
                # Other messages of the main files are compared on their own.
                reasons = self._messages(writer.message, reader.message)
                yield from reasons
                if reasons:
                    yield f"{path}: the type {writer.type_name} is incompatible"


def _are_local(writer: Descriptor, reader: Descriptor) -> bool:
    return bool(writer.file.name == reader.file.name == MAIN_FILE)


def _oneof_reasons(
    name: str, reader: Descriptor, written: dict[int, _Field], read: dict[int, _Field]
) -> Iterator[str]:
    sources: dict[str, list[_Field]] = {field.oneof: [] for field in read.values() if field.oneof}
    for number, field in read.items():
        if field.oneof and number in written:
            sources[field.oneof].append(written[number])
    for oneof in sorted(sources):
        moved = [field for field in sources[oneof] if not field.oneof]
        if len(moved) > 1:
            yield f"{name}, oneof {oneof}: several fields moved into it"
        elif moved and len(sources[oneof]) > 1:
            yield f"{name}, oneof {oneof}: field {moved[0].number} moved into an existing oneof"
    for number, field in written.items():
        if field.oneof in sources and (number not in read or read[number].oneof != field.oneof):
            yield f"{name}, oneof {field.oneof}: field {number} was removed from it"


def _descriptor(message: Descriptor) -> DescriptorProto:
    found = DescriptorProto()
    message.CopyToProto(found)
    return found


def _fields(message: Descriptor, descriptor: DescriptorProto) -> dict[int, _Field]:
    """The fields by number. Oneofs that stand for an optional field of proto3 do not count."""
    fields = {}
    for field, proto in zip(message.fields, descriptor.field, strict=True):
        oneof = field.containing_oneof
        in_oneof = oneof is not None and not proto.proto3_optional
        label: str | None = "optional"
        if field.is_required or field.is_repeated:
            label = "required" if field.is_required else "repeated"
        elif in_oneof or not field.has_presence:
            label = None
        fields[field.number] = _Field(
            number=field.number,
            type=FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower(),
            label=label,
            oneof=oneof.name if in_oneof else None,
            message=field.message_type,
            enum=field.enum_type,
        )
    return fields


def _groups(parent: Descriptor | None) -> set[str]:
    """The names of messages that fields of `parent` define: they are compared with the fields."""
    fields = [] if parent is None else [*parent.fields, *parent.extensions]
    groups = (field.message_type for field in fields if field.type == FieldDescriptor.TYPE_GROUP)
    return {group.name for group in groups if group.containing_type is parent}


def _local_name(kind: Descriptor | EnumDescriptor) -> str:
    """The full name without the package."""
    return str(kind.full_name).removeprefix(f"{kind.file.package}.")
