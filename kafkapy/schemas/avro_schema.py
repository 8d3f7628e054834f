"""Avro schemas: the text that the registry stores, and whether one can read another's data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, cast

from kafkapy.schemas.avro_text import full_document, java_text, normalized
from kafkapy.schemas.avro_types import (
    INNER_KEYS,
    RECORDS,
    AvroType,
    Reader,
    is_valid_default,
    simple_name,
)
from kafkapy.schemas.parsed_schema import (
    RESOLVED,
    TOO_DEEP,
    TOO_MANY_COMPARISONS,
    Budget,
    InvalidSchema,
    ParsedSchema,
    TooManyComparisons,
)

# The types of a writer that a reader's type takes, besides its own.
_PROMOTED: Final[Mapping[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_RECORD: Final = "record"


class AvroSchema:
    """A parsed schema. `text` is that of Avro's Java library."""

    def __init__(self, root: AvroType, referenced: Iterable[str]) -> None:
        """`referenced` are the names of references, which `text` only names."""
        self.root = root
        self._referenced = frozenset(referenced)
        self.text = java_text(root, self._referenced)

    @property
    def identity(self) -> str:
        return self.text

    @cached_property
    def normalized(self) -> str:
        self._check_defaults()
        return java_text(normalized(self.root), self._referenced)

    @property
    def document(self) -> Any:
        """JSON with all types, by their full names."""
        return full_document(self.root)

    def formatted(self, name: str) -> str:
        """In the format "resolved", with the types of references."""
        return java_text(self.root) if name == RESOLVED else self.text

    def _check_defaults(self) -> None:
        for each in _records(self.root):
            for field in each.fields:
                if field.has_default and not is_valid_default(field.type, field.default):
                    raise InvalidSchema(
                        f"The default of {each.fullname}.{field.name} is not of its type"
                    )

    def incompatibilities(self, writer: ParsedSchema, budget: Budget | None = None) -> list[str]:
        """The reasons of Avro's schema resolution, each with its place in this schema."""
        try:
            return _Resolution(budget or Budget()).reasons(self.root, cast(AvroSchema, writer).root)
        except RecursionError:
            return [TOO_DEEP]
        except TooManyComparisons:
            return [TOO_MANY_COMPARISONS]


def parse_avro_schema(text: str, references: Mapping[str, str]) -> AvroSchema:
    """Parse a schema. `references` are the texts of the schemas whose types it names, in an order
    in which each comes after those that it refers to itself.

    Raises:
        InvalidSchema: the text is not JSON, or not a schema.
    """
    reader = Reader()
    try:
        referenced = [reader.read(each).name for each in references.values()]
        return AvroSchema(reader.read(text), referenced)
    except RecursionError as error:
        raise InvalidSchema(TOO_DEEP) from error


def _records(root: AvroType) -> Iterable[AvroType]:
    """The records of a schema."""
    seen: set[int] = set()
    left = [root]
    while left:
        found = left.pop()
        if id(found) not in seen:
            seen.add(id(found))
            left += [*found.inner, *(each.type for each in found.fields)]
            if found.type in RECORDS:
                yield found


# A step to a place inside; and what is wrong there, with its details, or a pair of types there.
_Reason: TypeAlias = tuple[str, str, str]
_Part: TypeAlias = tuple[str, AvroType, AvroType]


class _Verdict(NamedTuple):
    """The result of a pair: its own reasons, and the pairs inside that are not compatible either.
    There are none if the pair is compatible."""

    reasons: list[_Reason]
    inner: list[_Part]


class _Resolution:
    """Compares pairs of types, each once, as `SchemaCompatibility` of Avro's Java library does."""

    def __init__(self, budget: Budget) -> None:
        self._verdicts: dict[tuple[int, int], _Verdict] = {}
        self._budget = budget

    def reasons(self, reader: AvroType, writer: AvroType) -> list[str]:
        """The reasons of all pairs, each with its place."""
        found, seen = list[str](), set[tuple[int, int]]()
        left: list[_Part] = [("", reader, writer)]
        while left:
            place, reader, writer = left.pop()
            if (id(reader), id(writer)) not in seen:
                seen.add((id(reader), id(writer)))
                reasons, inner = self._verdict(reader, writer)
                found += [
                    f"{kind} at {place + step or '/'}: {text}" for step, kind, text in reasons
                ]
                left += [(place + step, old, new) for step, old, new in reversed(inner)]
        return found

    def _verdict(self, reader: AvroType, writer: AvroType) -> _Verdict:
        self._budget.spend(1)
        key = id(reader), id(writer)
        if key not in self._verdicts:
            self._verdicts[key] = _Verdict([], [])  # of a recursive type, while it is compared
            self._verdicts[key] = self._compare(reader, writer)
        return self._verdicts[key]

    def _is_compatible(self, reader: AvroType, writer: AvroType) -> bool:
        return self._verdict(reader, writer) == ([], [])

    def _compare(self, reader: AvroType, writer: AvroType) -> _Verdict:
        if reader.type == "union":
            return _Verdict([*self._lacking(reader, writer)], [])
        if writer.type == "union":
            return _Verdict([], self._refused([("", reader, each) for each in writer.inner]))
        kinds = [_RECORD if each.type in RECORDS else each.type for each in (reader, writer)]
        if kinds[0] != kinds[1] and kinds[1] not in _PROMOTED.get(kinds[0], ()):
            message = f"reader type: {reader.type} not compatible with writer type: {writer.type}"
            return _Verdict([("", "type_mismatch", message)], [])
        reasons = list[_Reason]()
        if reader.fullname and not _has_name(reader, writer):
            reasons.append(("/name", "name_mismatch", f"expected: {writer.fullname}"))
        if reader.size != writer.size:
            sizes = f"expected: {writer.size}, found: {reader.size}"
            reasons.append(("/size", "fixed_size_mismatch", sizes))
        if reader.default is None and (lost := sorted({*writer.symbols} - {*reader.symbols})):
            reasons.append(("/symbols", "missing_enum_symbols", ", ".join(lost)))
        step = INNER_KEYS.get(reader.type, "")
        parts = [(f"/{step}", *pair) for pair in zip(reader.inner, writer.inner, strict=True)]
        if kinds[0] == _RECORD:
            missing, parts = _fields(reader, writer)
            reasons += missing
        return _Verdict(reasons, self._refused(parts))

    def _lacking(self, reader: AvroType, writer: AvroType) -> Iterable[_Reason]:
        branches = [("", writer)]
        if writer.type == "union":
            branches = [(f"/{i}", each) for i, each in enumerate(writer.inner)]
        for step, each in branches:
            if not any(self._is_compatible(one, each) for one in reader.inner):
                yield step, "missing_union_branch", f"reader union lacking writer type: {each.name}"

    def _refused(self, parts: Iterable[_Part]) -> list[_Part]:
        """The pairs that are not compatible."""
        return [each for each in parts if not self._is_compatible(*each[1:])]


def _has_name(reader: AvroType, writer: AvroType) -> bool:
    """Whether the names are the same without their namespaces, or a reader's alias is the writer's
    full name."""
    is_same = simple_name(reader.fullname) == simple_name(writer.fullname)
    return is_same or writer.fullname in reader.aliases


def _fields(reader: AvroType, writer: AvroType) -> tuple[list[_Reason], list[_Part]]:
    """The reasons why a reader's fields have no value, and the pairs of fields' types."""
    written = {each.name: each for each in writer.fields}
    reasons, parts = list[_Reason](), list[_Part]()
    for i, each in enumerate(reader.fields):
        step = f"/fields/{i}"
        found = [written[name] for name in (each.name, *each.aliases) if name in written]
        if len(found) > 1:
            message = f"{each.name} has the names of several fields"
            reasons.append((step, "ambiguous_field", message))
        elif found:
            parts.append((f"{step}/type", each.type, found[0].type))
        elif not each.has_default:
            reasons.append((step, "reader_field_missing_default_value", each.name))
    return reasons, parts
