"""Writes the encoder of a schema in one version, as Python source.

The function traverses the message once and collects *chunks* of bytes. Adjacent fields of fixed
size, with the length that follows them, become one precompiled `Struct` (a *run*). Chunks without
branches between them are added in one statement. Big `records` are passed by reference, never
copied.

The same source, written as a generator, encodes in slices: it yields its cost after each element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkapy.protocol.primitives import (
    FEW,
    ONE_BYTE_UVARINT,
    few_numbers,
    tagged_field,
    tagged_fields,
    uvarint,
    write_numbers,
    write_records,
)
from kafkapy.protocol.schema import RECORDS, STRING, UUID, Field, Kind, Struct
from kafkapy.protocol.source import Source

_HELPERS = {
    "one_byte_uvarint": ONE_BYTE_UVARINT,
    "tagged_field": tagged_field,
    "tagged_fields": tagged_fields,
    "uvarint": uvarint,
    "write_numbers": write_numbers,
    "write_records": write_records,
}
_CHUNKS_MAX: Final = 4096


def write_encoder(
    cls: type[Struct], version: int, flexible: bool, sliced: bool = False
) -> Callable[..., Any]:
    """The function `encode(message, parts)` of `cls`: appends the message's bytes to `parts`.

    With `sliced` a generator function, which yields costs.
    """
    return _EncoderWriter(version, flexible, sliced).write(cls)


class _EncoderWriter:
    """Writes one encoder. Names in its source: `parts` (the result), `out` (chunks not yet in it);
    n* lengths, v* values."""

    def __init__(self, version: int, flexible: bool, sliced: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.sliced = sliced
        self.source = Source(dict(_HELPERS))
        self.run: list[tuple[str, str]] = []
        self.chunks: list[str] = []
        self.out = "out"

    def write(self, cls: type[Struct]) -> Callable[..., Any]:
        """Write the whole function."""
        source = self.source
        source.open("def encode(message, parts):")
        source.line("out = []")
        self.struct(cls, "message")
        self.flush()
        source.line("parts.append(b''.join(out))")
        if self.sliced:
            source.line("yield 0")
        return source.function("encode", f"<encode {cls.__name__} v{self.version}>")

    def struct(self, cls: type[Struct], owner: str) -> None:
        """Write one struct that the variable or expression `owner` holds."""
        present = [field for field in cls.FIELDS if self.version in field.versions]
        for field in present:
            if field.tag is None:
                self.field(field, f"{owner}.{field.name}")
        if self.flexible:
            known = [field for field in present if field.tag is not None]
            self.tagged_fields(sorted(known, key=lambda field: field.tag or 0), owner)

    def field(self, field: Field, value: str) -> None:
        """Write one field."""
        nullable = field.is_nullable(self.version)
        if field.is_array:
            self.array(field.item, nullable, value)
        elif isinstance(field.item, Kind):
            self.primitive(field.item, nullable, value)
        elif nullable:
            self.nullable_struct(field.item, value)
        else:
            held = self.source.name("o")
            self.source.line(f"{held} = {value}")
            self.struct(field.item, held)

    def primitive(self, kind: Kind[Any], nullable: bool, value: str) -> None:
        """Write a primitive: fixed sizes join the run."""
        source = self.source
        if kind.code:
            self.run.append((kind.code, value))
            return
        held, size = source.name("v"), source.name("n")
        source.line(f"{held} = {value}")
        if kind is RECORDS:
            source.line(
                f"{size} = -1 if {held} is None "
                f"else sum(map(len, {held})) if isinstance({held}, list) else len({held})"
            )
            self.length("i", size)
            self.flush()
            source.line(f"write_records({held}, {size}, out, parts)")
            return
        if kind is STRING:
            encode = f"{held} = {held}.encode()"
            source.line(f"if {held} is not None: {encode}" if nullable else encode)
        source.line(f"{size} = {f'-1 if {held} is None else ' if nullable else ''}len({held})")
        self.length("h" if kind is STRING else "i", size)
        self.flush_run()
        self.chunks.append(f"{held} or b''" if nullable else held)

    def length(self, code: str, size: str) -> None:
        """Write the length or count in the variable `size` (-1 is null)."""
        if not self.flexible:
            self.run.append((code, size))
            return
        if self.run:
            short = self.packed([*self.run, ("B", f"{size} + 1")])
            long = f"{self.packed(self.run)} + uvarint({size} + 1)"
        else:
            short, long = f"one_byte_uvarint[{size} + 1]", f"uvarint({size} + 1)"
        self.chunks.append(f"{short} if {size} < 127 else {long}")
        self.run.clear()

    def array(self, item: Kind[Any] | type[Struct], nullable: bool, value: str) -> None:
        """Write an array: its count, then a loop (numbers: one pack)."""
        source = self.source
        held, size = source.name("v"), source.name("n")
        source.line(f"{held} = {value}")
        source.line(f"{size} = {f'-1 if {held} is None else ' if nullable else ''}len({held})")
        if isinstance(item, Kind) and item.code and item is not UUID:
            self.numbers(item.code, held, size)
            return
        self.length("i", size)
        self.flush()
        element = source.name("o")
        source.open(f"for {element} in {held}{' or ()' if nullable else ''}:")
        if isinstance(item, Kind):
            self.primitive(item, False, element)
        else:
            self.struct(item, element)
        self.flush()
        if self.sliced:
            if self.out == "out":  # chunks take many times the memory of their bytes
                source.open(f"if len(out) > {_CHUNKS_MAX}:")
                source.line("parts.append(b''.join(out))")
                source.line("out.clear()")
                source.close()
            source.line("yield 1")
        source.close()

    def numbers(self, code: str, held: str, size: str) -> None:
        """Write an array of numbers; short ones take one pack together with their count."""
        self.flush_run()
        prefix, count = ("B", f"{size} + 1") if self.flexible else ("i", size)
        few = self.source.value("F", [each.pack for each in few_numbers(prefix + code)])
        many = f"write_numbers({code!r}, {held}, {self.flexible})"
        self.chunks.append(f"{few}[{size}]({count}, *{held}) if 0 <= {size} < {FEW} else {many}")

    def nullable_struct(self, item: type[Struct], value: str) -> None:
        """Write a struct behind its one-byte mark: -1 null, 1 present (KIP-893)."""
        source = self.source
        held = source.name("o")
        self.flush()
        source.line(f"{held} = {value}")
        source.line(f"if {held} is None: {self.out}.append(b'\\xff')")
        source.open("else:")
        self.chunks.append("b'\\x01'")
        self.struct(item, held)
        self.flush()
        source.close()

    def tagged_fields(self, known: list[Field], owner: str) -> None:
        """Write the section that ends a flexible struct: fields that are not at their default."""
        source = self.source
        if not known:
            self.run.append(("x", ""))
            return
        self.flush()
        fields, inner, outer = source.name("t"), source.name("w"), self.out
        source.line(f"{fields} = []")
        for field in known:
            held, default = source.name("v"), source.value("D", field.default)
            source.line(f"{held} = {owner}.{field.name}")
            source.open(f"if {held} is not {default} and {held} != {default}:")
            source.line(f"{inner} = []")
            self.out = inner
            self.field(field, held)
            self.flush()
            self.out = outer
            source.line(f"{fields}.append(tagged_field({field.tag}, {inner}))")
            source.close()
        self.chunks.append(f"tagged_fields({fields}) if {fields} else b'\\0'")

    def packed(self, run: list[tuple[str, str]]) -> str:
        """The expression that packs `run`."""
        codes = "".join(code for code, _ in run)
        values = [value for _, value in run if value]
        if not values:
            return repr(bytes(len(codes)))
        layout = self.source.value("P", self.source.layout(codes).pack)
        return f"{layout}({', '.join(values)})"

    def flush_run(self) -> None:
        """Turn the run into a chunk."""
        if self.run:
            self.chunks.append(self.packed(self.run))
            self.run.clear()

    def flush(self) -> None:
        """Write the statement that adds the chunks to the output."""
        self.flush_run()
        if len(self.chunks) == 1:
            self.source.line(f"{self.out}.append({self.chunks[0]})")
        elif self.chunks:
            self.source.line(f"{self.out} += ({', '.join(self.chunks)})")
        self.chunks.clear()
