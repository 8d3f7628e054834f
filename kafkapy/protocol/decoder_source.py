"""Writes the decoder of a schema in one version, as Python source.

The function reads the bytes once. Adjacent fields of fixed size, with the length prefix or tag
count that follows them, become one precompiled `Struct` (a *run*), which is unpacked directly into
the attributes of the message. Nested structs are inlined, arrays become loops. Before memory is
allocated, each length or count is checked against the remaining bytes, and the memory for the
elements of all arrays against `room`. The smallest struct takes one byte on the wire and more than
a hundred in memory.

The same source, written as a generator, decodes in slices: it yields its cost after each element.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error as StructError
from typing import Any, Final

from kafkapy.common.errors import MessageTooLarge, ProtocolViolation
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.primitives import (
    FEW,
    STRING_BYTES_MAX,
    TAGGED_FIELDS_MAX,
    few_numbers,
    read_numbers,
    read_uvarint,
    replaced_text,
    rest_of_uvarint,
    skip_tagged_fields,
)
from kafkapy.protocol.schema import RECORDS, STRING, UUID, Field, Kind, Struct
from kafkapy.protocol.source import Source

ROOM_BYTES: Final = 1 << 28
"""The default limit of memory for the elements of one message. A cluster of 200,000 partitions
needs half of it."""

# The memory of a value in CPython, with the slot or list entry that holds it.
_STRUCT_BYTES: Final = 56
_NUMBER_BYTES: Final = 40
_RESPONSE_ROW_BYTES: Final = 128  # of the response row of an element
_SMALL_NUMBER_BYTES: Final = 8
_OBJECT_BYTES: Final = 64  # str, bytes, list, Uuid
_TAG_BYTES: Final = 64  # unknown tagged fields are not kept, but take as long to skip

_HELPERS = {
    "MessageTooLarge": MessageTooLarge,
    "ProtocolViolation": ProtocolViolation,
    "Uuid": Uuid,
    "make_bytes": bytes.__new__,
    "new": object.__new__,
    "read_numbers": read_numbers,
    "read_uvarint": read_uvarint,
    "replaced_text": replaced_text,
    "rest_of_uvarint": rest_of_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "wrong": (StructError, IndexError),
}


def write_decoder(
    cls: type[Struct], version: int, flexible: bool, sliced: bool = False
) -> Callable[..., Any]:
    """The function `decode(buf: memoryview, position, room) -> (message, position)` of `cls`.

    With `sliced` a generator function: it yields costs, and returns the same.
    """
    return _DecoderWriter(cls, version, flexible, sliced).write()


class _DecoderWriter:
    """Writes one decoder. Names in its source: `buf`, `p` (position), `end`, `room` (bytes that may
    still be allocated); o* structs, n* lengths, e* ends, a* arrays."""

    def __init__(self, cls: type[Struct], version: int, flexible: bool, sliced: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.sliced = sliced
        # Without records to leave in place, a copy of the frame is cheaper to slice than a view.
        # A message that is decoded in slices is large: it is not copied.
        self.views = sliced or _has_records(cls)
        self.source = Source(dict(_HELPERS))
        self.run: list[tuple[str, str]] = []
        self.uuids: list[tuple[str, str]] = []

    def write(self) -> Callable[..., Any]:
        """Write the whole function."""
        source = self.source
        source.open(f"def decode(buf, p, room={ROOM_BYTES}):")
        source.line("end = len(buf)")
        if not self.views:
            source.line("buf = buf.tobytes()")
        source.open("try:")
        variable = self.struct(self.cls)
        self.flush()
        if self.sliced:
            source.line("yield 0")
        source.line(f"return {variable}, p")
        source.close()
        source.open("except wrong as error:")
        source.line(f"{self.refusal('{error}')} from error")
        return source.function("decode", f"<decode {self.cls.__name__} v{self.version}>")

    def struct(self, cls: type[Struct]) -> str:
        """Write one struct and return the variable that holds it."""
        source, tagged = self.source, []
        variable = source.name("o")
        source.line(f"{variable} = new({source.value('C', cls)})")
        for field in cls.FIELDS:
            target = f"{variable}.{field.name}"
            if self.version not in field.versions:
                self.unset(field, target)
            elif field.tag is not None:
                self.unset(field, target)
                tagged.append((field, target))
            else:
                self.field(field, target)
        if self.flexible:
            self.tagged_fields(tagged)
        return variable

    def unset(self, field: Field, target: str) -> None:
        """Write the default of a field that is absent from the wire, or may be."""
        if isinstance(field.default, list):
            self.source.line(f"{target} = []")
        else:
            self.source.line(f"{target} = {self.source.value('D', field.default)}")

    def field(self, field: Field, target: str) -> None:
        """Write one field that is on the wire."""
        nullable = field.is_nullable(self.version)
        if field.is_array:
            self.array(field.item, nullable, target)
        elif isinstance(field.item, Kind):
            self.primitive(field.item, nullable, target)
        elif nullable:
            self.nullable_struct(field.item, target)
        else:
            self.source.line(f"{target} = {self.struct(field.item)}")

    def primitive(self, kind: Kind[Any], nullable: bool, target: str) -> None:
        """Write a primitive: fixed sizes join the run."""
        if kind is UUID:
            raw = self.source.name("u")
            self.run.append((kind.code, raw))
            self.uuids.append((target, raw))
        elif kind.code:
            self.run.append((kind.code, target))
        else:
            self.sized(kind, nullable, target)

    def sized(self, kind: Kind[Any], nullable: bool, target: str) -> None:
        """Write a string, bytes or records: a length, then that number of bytes."""
        source = self.source
        size = self.length("h" if kind is STRING else "i")
        if nullable:
            source.line(f"if {size} == -1: {target} = None")
            source.open("else:")
        stop = source.name("e")
        source.line(f"{stop} = p + {size}")
        limit = f"{size} <= {STRING_BYTES_MAX} and " if kind is STRING and self.flexible else ""
        self.refuse_unless(
            f"{limit}p <= {stop} <= end", f"{{{size}}} bytes of {self.label(target)}"
        )
        read = f"buf[p:{stop}]"
        if self.views and kind is not RECORDS:
            read += ".tobytes()"
        if kind is STRING:
            source.line(f"try: {target} = {read}.decode()")
            source.line(f"except UnicodeDecodeError: {target} = replaced_text({read})")
        else:
            source.line(f"{target} = {read}")
        source.line(f"p = {stop}")
        if nullable:
            source.close()

    def length(self, code: str) -> str:
        """Write the reading of a length or count (-1 is null); ends the run."""
        size = self.source.name("n")
        if self.flexible:
            self.run.append(("B", size))
            self.flush()
            self.source.line(f"if {size} > 127: {size}, p = rest_of_uvarint(buf, p, {size})")
            self.source.line(f"{size} -= 1")
        else:
            self.run.append((code, size))
            self.flush()
        return size

    def array(self, item: Kind[Any] | type[Struct], nullable: bool, target: str) -> None:
        """Write an array: its count, then a loop (numbers: one unpack)."""
        source = self.source
        count = self.length("i")
        if nullable:
            source.line(f"if {count} == -1: {target} = None")
            source.open("else:")
        self.refuse_unless(
            f"0 <= {count} <= (end - p) // {self.size_min(item)}",
            f"{{{count}}} elements of {self.label(target)}",
        )
        # A number is a partition, which has a response row, or a broker.
        has_response_rows = not isinstance(item, Kind) or "partition" in self.label(target)
        memory_bytes = memory_of(item, self.version, has_response_rows=has_response_rows)
        source.line(f"room -= {count} * {memory_bytes}")
        self.refuse_large()
        if isinstance(item, Kind) and item.code and item is not UUID:
            few = source.value("F", [each.unpack_from for each in few_numbers(item.code)])
            many = f"read_numbers({item.code!r}, {count}, buf, p)"
            source.line(f"{target} = list({few}[{count}](buf, p) if {count} < {FEW} else {many})")
            source.line(f"p += {count} * {source.layout(item.code).size}")
        else:
            self.loop(item, count, target)
        if nullable:
            source.close()

    def loop(self, item: Kind[Any] | type[Struct], count: str, target: str) -> None:
        """Write the reading of `count` elements."""
        source = self.source
        elements = source.name("a")
        source.line(f"{target} = {elements} = []")
        source.open(f"for _ in range({count}):")
        if isinstance(item, Kind):
            element = source.name("v")
            self.primitive(item, False, element)
        else:
            element = self.struct(item)
        self.flush()
        source.line(f"{elements}.append({element})")
        if self.sliced:
            source.line("yield 1")
        source.close()

    def nullable_struct(self, item: type[Struct], target: str) -> None:
        """Write a struct behind its one-byte mark: negative is null (KIP-893)."""
        source = self.source
        mark = source.name("n")
        self.run.append(("b", mark))
        self.flush()
        source.line(f"if {mark} < 0: {target} = None")
        source.open("else:")
        variable = self.struct(item)
        self.flush()
        source.line(f"{target} = {variable}")
        source.close()

    def tagged_fields(self, known: list[tuple[Field, str]]) -> None:
        """Write the section that ends a flexible struct; mostly it is one zero byte."""
        source = self.source
        count = source.name("n")
        self.run.append(("B", count))
        self.flush()
        if not known:
            source.open(f"if {count}:")
            source.line(f"{count}, p = skip_tagged_fields(buf, p - 1)")
            source.line(f"room -= {count} * {_TAG_BYTES}")
            self.refuse_large()
            source.close()
            return
        source.open(f"if {count}:")
        source.line(f"{count}, p = read_uvarint(buf, p - 1)")
        limit = f"{count} <= {TAGGED_FIELDS_MAX}"
        self.refuse_unless(limit, f"{{{count}}} tagged fields in one section")
        source.line(f"room -= {count} * {_TAG_BYTES}")
        self.refuse_large()
        tag, size, stop = source.name("t"), source.name("n"), source.name("e")
        source.open(f"for _ in range({count}):")
        source.line(f"{tag}, p = read_uvarint(buf, p)")
        source.line(f"{size}, p = read_uvarint(buf, p)")
        source.line(f"{stop} = p + {size}")
        for field, target in known:
            source.open(f"{'if' if field is known[0][0] else 'elif'} {tag} == {field.tag}:")
            self.field(field, target)
            self.flush()
            source.close()
        source.line("else: p = " + stop)
        self.refuse_unless(f"p == {stop} <= end", f"{{{size}}} bytes of tagged field {{{tag}}}")
        source.close()
        source.close()

    def flush(self) -> None:
        """Write the unpacking of the run."""
        if not self.run:
            return
        source, run = self.source, self.run
        codes = "".join(code for code, _ in run)
        if codes == "B":
            source.line(f"{run[0][1]} = buf[p]")
        else:
            layout = source.value("U", source.layout(codes).unpack_from)
            source.line(f"{', '.join(target for _, target in run)}, = {layout}(buf, p)")
        source.line(f"p += {source.layout(codes).size}")
        for target, raw in self.uuids:
            source.line(f"{target} = make_bytes(Uuid, {raw})")
        run.clear()
        self.uuids.clear()

    def refuse_unless(self, condition: str, reason: str) -> None:
        """Write a check; `reason` may name variables in braces."""
        self.source.line(f"if not {condition}: {self.refusal(reason)}")

    def refuse_large(self) -> None:
        """Write the check of `room`."""
        reason = f"{self.cls.__name__} v{self.version}: too large in memory"
        self.source.line(f"if room < 0: raise MessageTooLarge({reason!r})")

    def refusal(self, reason: str) -> str:
        """The statement that refuses the message."""
        return f"raise ProtocolViolation(f'{self.cls.__name__} v{self.version}: {reason}')"

    def size_min(self, item: Kind[Any] | type[Struct]) -> int:
        """The smallest number of bytes of one element."""
        if isinstance(item, Kind):
            if item.code:
                return self.source.layout(item.code).size
            return 1 if self.flexible else 2 if item is STRING else 4
        size = 1 if self.flexible else 0
        for field in item.FIELDS:
            if self.version not in field.versions or field.tag is not None:
                continue
            if field.is_array:
                size += 1 if self.flexible else 4
            elif isinstance(field.item, Kind) or not field.is_nullable(self.version):
                size += self.size_min(field.item)
            else:
                size += 1
        return size

    def label(self, target: str) -> str:
        """The name of a field in errors."""
        return target.partition(".")[2] or "an array"


def memory_of(item: Kind[Any] | type[Struct], version: int, *, has_response_rows: bool) -> int:
    """The bytes of memory that one array element takes, without the bytes of its strings; with
    `has_response_rows`, also those of its response row."""
    if isinstance(item, Kind) and item.code and item.code in "b?":
        return _SMALL_NUMBER_BYTES
    return _RESPONSE_ROW_BYTES * has_response_rows + _memory_of(item, version)


def _memory_of(item: Kind[Any] | type[Struct], version: int) -> int:
    if isinstance(item, Kind):
        if not item.code or item is UUID:
            return _OBJECT_BYTES
        return _SMALL_NUMBER_BYTES if item.code in "b?" else _NUMBER_BYTES
    size = _STRUCT_BYTES
    for field in item.FIELDS:
        if version not in field.versions or field.tag is not None:
            size += _OBJECT_BYTES if field.is_array else _SMALL_NUMBER_BYTES
        elif field.is_array:
            size += _OBJECT_BYTES
        else:
            size += _memory_of(field.item, version)
    return size


def _has_records(item: Kind[Any] | type[Struct]) -> bool:
    if isinstance(item, Kind):
        return item is RECORDS
    return any(_has_records(field.item) for field in item.FIELDS)
