"""Parses Protobuf schemas."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final, cast

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from kafkapy.schemas.compiled_sources import CompiledSources
from kafkapy.schemas.parsed_schema import (
    TOO_DEEP,
    TOO_MANY_COMPARISONS,
    Budget,
    InvalidSchema,
    ParsedSchema,
    TooManyComparisons,
)
from kafkapy.schemas.protobuf_compiler import MAIN_FILE
from kafkapy.schemas.protobuf_differences import incompatibilities
from kafkapy.schemas.protobuf_text import file_text
from kafkapy.schemas.wire_format import MessagePath

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_WORDS: Final = re.compile(r"[\w.]+")
_NAMES_LENGTH_MAX: Final = 1 << 28
# A request may refer to one schema by thousands of names, each of which becomes a file.
_REFERENCES_LENGTH_MAX: Final = 16 << 20

_compiled: Final = CompiledSources()


class ProtobufSchema:
    """A compiled schema. `text` is .proto source; `identity` is the descriptor."""

    def __init__(self, text: str, file: FileDescriptor) -> None:
        self.text: Final = text
        serialized = _proto(file).SerializeToString(deterministic=True)
        self.identity: Final = base64.b64encode(serialized).decode("ascii")
        self.file: Final = file

    @property
    def normalized(self) -> str:
        """The source of the descriptor, with the fields of each message by their numbers."""
        file = _proto(self.file)
        if file.syntax == "editions":
            return self.text
        for each in file.message_type:
            _sort_fields(each)
        return file_text(file, self.file.pool)

    def formatted(self, name: str) -> str:
        """In the format "serialized", the FileDescriptorProto in base64: for clients without a
        parser."""
        return self.identity if name == "serialized" else self.text

    def messages(self) -> dict[MessagePath, Descriptor]:
        """All messages by their places."""
        found: dict[MessagePath, Descriptor] = {}

        def add(messages: Iterable[DescriptorProto], path: MessagePath, prefix: str) -> None:
            for i, each in enumerate(messages):
                name = f"{prefix}{each.name}"
                found[*path, i] = self.file.pool.FindMessageTypeByName(name)
                add(each.nested_type, (*path, i), f"{name}.")

        file = _proto(self.file)
        add(file.message_type, (), f"{file.package}." if file.package else "")
        return found

    def incompatibilities(self, writer: ParsedSchema, budget: Budget | None = None) -> list[str]:
        """The reasons of Confluent's rules, each with its place in the writer's schema."""
        try:
            return incompatibilities(
                cast(ProtobufSchema, writer).file, self.file, budget or Budget()
            )
        except RecursionError:
            return [TOO_DEEP]
        except TooManyComparisons:
            return [TOO_MANY_COMPARISONS]


def parse_protobuf_schema(text: str, references: Mapping[str, str]) -> ProtobufSchema:
    """Parse .proto source, or a FileDescriptorProto in base64, as Confluent's Python client sends.

    Args:
        text: the source or the descriptor.
        references: the sources of the imported files by import path, also of indirect imports.

    Raises:
        InvalidSchema: the text is not a valid schema, or an import is missing.
    """
    given = _decode(text)
    if given is not None:
        text = _source(given, references)
    pool = _pool(_compile(text, references))
    return ProtobufSchema(text, pool.FindFileByName(MAIN_FILE))


def prepare_protobuf_schemas(schemas: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Compile the sources of schemas that will be parsed, at once. Wrong ones are passed over."""
    _compiled.prepare(each for each in schemas if _fault(*each) is None and not _decode(each[0]))


def _decode(text: str) -> FileDescriptorProto | None:
    """Decode a descriptor in base64. .proto source has spaces or semicolons, base64 has none."""
    compact = "".join(text.split())
    if not _BASE64.fullmatch(compact):
        return None
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(compact, validate=True))
    except (binascii.Error, DecodeError):
        return None
    return file if file.name else None  # without a name it is a word of some other text


def _source(file: FileDescriptorProto, references: Mapping[str, str]) -> str:
    """The source of a descriptor.

    Raises:
        InvalidSchema: an import is missing, or a declaration is wrong.
    """
    if file.syntax == "editions":
        raise InvalidSchema("an edition must be sent as .proto source, not as a descriptor")
    file.name = MAIN_FILE
    # protoc checks the file, and gives the extensions that define its custom options.
    plain = file_text(file, None)
    return file_text(file, _pool(_compile(plain, references)))


def _compile(source: str, references: Mapping[str, str]) -> Sequence[FileDescriptorProto]:
    """
    Raises:
        InvalidSchema: protoc reports an error, or the names or references are too long.
    """
    fault = _fault(source, references)
    if fault is not None:
        raise InvalidSchema(fault)
    return tuple(_compiled.compile(source, references).file)


def _fault(source: str, references: Mapping[str, str]) -> str | None:
    """The reason why protoc would take too much memory for a source: the full name of a declaration
    has the names of up to 32 messages around it."""
    if sum(map(len, references.values())) > _REFERENCES_LENGTH_MAX:
        return "its references are too long"
    longest = sum(nlargest(32, map(len, _WORDS.findall(source))))
    if longest * (source.count(";") + source.count("{")) > _NAMES_LENGTH_MAX:
        return "the names of its declarations are too long"
    return None


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
    except (TypeError, ValueError) as error:
        raise InvalidSchema(" ".join(str(error).split())) from error
    return pool


def _sort_fields(message: DescriptorProto) -> None:
    message.field.sort(key=lambda field: field.number)
    for each in message.nested_type:
        _sort_fields(each)


def _proto(file: FileDescriptor) -> FileDescriptorProto:
    found = FileDescriptorProto()
    file.CopyToProto(found)
    return found
