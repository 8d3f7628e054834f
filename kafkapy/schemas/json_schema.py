"""JSON schemas, and the rules by which a reader's schema accepts the data of a writer's.

The rules are those of Confluent Schema Registry (io.confluent.kafka.schemaregistry.json.diff). They
compare keywords, not the sets of values that the schemas accept, so that some harmless changes are
refused. Like Confluent's, they do not compare the values of `patternProperties`, `propertyNames`,
`contains`, `format`, `if`, `then` and `else`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Final, TypeAlias

from kafkapy.common.patterns import InvalidPattern, compile_linear
from kafkapy.schemas.json_subschemas import (
    Node,
    Subschema,
    fault_of,
    load,
    minified,
    node_of,
    parsed,
    validate,
)
from kafkapy.schemas.parsed_schema import (
    REASON_LENGTH_MAX,
    REASONS_MAX,
    TOO_MANY_COMPARISONS,
    Budget,
    InvalidSchema,
    ParsedSchema,
    TooManyComparisons,
)

# A path below the compared schemas, and the incompatible change there.
_Reason: TypeAlias = tuple[str, str]
_ABSENT: Final = object()

# The costs of a comparison of two types, and of a look at a name or a known comparison.
_COMPARISON_STEPS: Final = 10
_STEP: Final = 1

# The memory of a pattern: one with 8 MiB, which is the default of RE2, takes 0.1 s to be compiled.
_PATTERN_MEMORY_BYTES: Final = 1 << 20
_INSTRUCTIONS_MAX: Final = 50_000

# The nesting of comparisons. Each takes frames of Python's stack, and at its end the package `rpds`
# may panic instead of raising RecursionError.
_NESTING_MAX: Final = 80


class JsonSchema:
    """A valid JSON schema whose references are resolved."""

    def __init__(self, root: Subschema) -> None:
        self.text: Final = minified(root.raw)
        self.identity: Final = minified(root.raw, sort_keys=True)
        self._root = root

    @property
    def normalized(self) -> str:
        return self.identity

    def formatted(self, name: str) -> str:
        return self.text

    def fault(self, value: Any) -> str | None:
        """The place and the reason if a value is not of this schema."""
        return fault_of(self._root, value)

    def incompatibilities(self, writer: ParsedSchema, budget: Budget | None = None) -> list[str]:
        """The reasons why this schema, as the reader, cannot read data of `writer`."""
        assert isinstance(writer, JsonSchema)
        try:
            reasons = _Comparison(budget or Budget()).compare(writer._root, self._root)
        except RecursionError:
            return ["#: the schemas are nested too deeply to be compared"]
        except TooManyComparisons:
            return [f"#: {TOO_MANY_COMPARISONS}"]
        return [f"#{path}: {change}" for path, change in dict.fromkeys(reasons)]


def parse_json_schema(text: str, references: Mapping[str, str]) -> JsonSchema:
    """Parse a schema of draft 4, 6, 7, 2019-09 or 2020-12; without a known `$schema`, of draft 7.

    Args:
        text: the schema.
        references: the texts of the referenced schemas, by the URI that `$ref` names.

    Raises:
        InvalidSchema: the text is not a schema, or a `$ref` cannot be resolved.
    """
    try:
        others = {other: parsed(other) for other in set(references.values())}
        root = load(parsed(text), {name: others[other] for name, other in references.items()})
        validate(root)
        return JsonSchema(root)
    except RecursionError:
        raise InvalidSchema("The schema is nested too deeply") from None


def _upper_limit(writer: Any, reader: Any) -> str | None:
    return f"was decreased from {writer} to {reader}" if reader < writer else None


def _lower_limit(writer: Any, reader: Any) -> str | None:
    return f"was increased from {writer} to {reader}" if reader > writer else None


def _divisor(writer: Fraction, reader: Fraction) -> str | None:
    if writer.numerator * reader.denominator % (writer.denominator * reader.numerator) == 0:
        return None
    older, newer = (n.numerator if n.denominator == 1 else float(n) for n in (writer, reader))
    return f"was changed from {older} to {newer}, not a divisor"


def _unchanged(writer: Any, reader: Any) -> str | None:
    return None if writer == reader else f"was changed from {writer} to {reader}"


def _options(writer: dict[str, None], reader: dict[str, None]) -> str | None:
    lost = [option for option in writer if option not in reader]
    return f"no longer contains {', '.join(lost)}" if lost else None


# The rule of a keyword that both schemas have: the change, if it is incompatible. A keyword that
# only the reader has is incompatible.
_RULES: Final[dict[str, Callable[[Any, Any], str | None]]] = {
    "enum": _options,
    "const": _unchanged,
    "pattern": _unchanged,
    "multipleOf": _divisor,
    "uniqueItems": _unchanged,
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), _upper_limit),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), _lower_limit),
    **dict.fromkeys(("maxProperties", "maxContains"), _upper_limit),
    **dict.fromkeys(("minProperties", "minContains"), _lower_limit),
}


def _value(keywords: Mapping[str, Any], keyword: str) -> Any:
    value = keywords.get(keyword, _ABSENT)
    if not isinstance(value, bool):
        return value
    # `uniqueItems`, or a flag of draft 4 that makes the limit `maximum` or `minimum` exclusive.
    limit = keyword.removeprefix("exclusive").lower()
    return keywords.get(limit, True) if value else _ABSENT


def _changed_keywords(writer: Node, reader: Node) -> Iterator[_Reason]:
    for keyword in sorted(reader.keywords.keys() & _RULES.keys()):
        older, newer = _value(writer.keywords, keyword), _value(reader.keywords, keyword)
        if newer is not _ABSENT:
            change = "was added" if older is _ABSENT else _RULES[keyword](older, newer)
            if change:
                yield f"/{keyword}", f"{keyword} {change}"


def _compiled(pattern: str) -> Any:
    """A compiled pattern, or None if RE2 does not support it."""
    try:
        return compile_linear(pattern, _PATTERN_MEMORY_BYTES)
    except InvalidPattern:
        return None


def _below(step: str, reasons: Iterable[_Reason]) -> Iterator[_Reason]:
    return ((f"/{step}{path}", change) for path, change in reasons)


class _Comparison:
    """Compares pairs of schemas, each pair once: recursive schemas meet the same pairs again. The
    generators stop when there are enough reasons."""

    def __init__(self, budget: Budget) -> None:
        self._known: dict[tuple[int, int], list[_Reason]] = {}
        self._accepted: list[tuple[int, int]] = []
        self._running: set[tuple[int, int]] = set()
        self._nodes: dict[int, Node] = {}
        self._patterns: dict[str, Any] = {}
        self._budget = budget

    def _spend(self, steps: int) -> None:
        self._budget.spend(steps / _COMPARISON_STEPS)

    def compare(self, writer: Subschema, reader: Subschema) -> list[_Reason]:
        self._spend(_STEP)
        older, newer = self._node(writer), self._node(reader)
        pair = id(older.schema.raw), id(newer.schema.raw)
        if pair in self._running:
            return []  # a recursive schema: the outer comparison finds the differences
        if pair not in self._known:
            self._spend(_COMPARISON_STEPS)
            if len(self._running) == _NESTING_MAX:
                raise RecursionError
            self._running.add(pair)
            before = len(self._accepted)
            try:
                # Schemas of 1 KB can have 2^40 reasons.
                reasons = islice(self._compare(older, newer), REASONS_MAX)
                length = REASON_LENGTH_MAX
                found = [(path[:length], change[:length]) for path, change in reasons]
            finally:
                self._running.remove(pair)
            if found:
                # Pairs inside may be known as compatible only because this one was taken to be so.
                for inner in self._accepted[before:]:
                    del self._known[inner]
                del self._accepted[before:]
            else:
                self._accepted.append(pair)
            self._known[pair] = found
        return self._known[pair]

    def _node(self, schema: Subschema) -> Node:
        found = self._nodes.get(id(schema.raw))
        if found is None:
            target = schema.target()
            # The nodes keep all raw schemas alive, so that their ids stay unique.
            found = self._nodes.get(id(target.raw)) or node_of(target)
            self._nodes[id(target.raw)] = self._nodes[id(schema.raw)] = found
        return found

    def _compare(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        if self._is_alternative(writer, reader):
            return
        if writer.kind != reader.kind and not (writer.subschemas and reader.subschemas):
            if writer.kind != "never" and reader.kind != "any":
                yield "", f"the type was changed from {writer.name} to {reader.name}"
            return
        if reader.subschemas:
            yield from self._combined(writer, reader)
            return
        self._spend(_STEP * (len(writer.keywords.get("enum", ())) // 10))
        yield from _changed_keywords(writer, reader)
        if reader.name == "integer" and writer.name != "integer":
            yield "", "the type was narrowed from number to integer"
        if reader.kind == "not":
            yield from self._not(writer, reader)
        elif reader.kind == "object":
            yield from self._object(writer, reader)
        elif reader.kind == "array":
            yield from self._array(writer, reader)

    def _accepts(self, writer: Subschema, reader: Subschema) -> bool:
        return not self.compare(writer, reader)

    def _is_alternative(self, writer: Node, reader: Node) -> bool:
        """Whether one subschema of a combined schema suits the other schema, a simple one."""
        if reader.subschemas and not writer.subschemas:
            if reader.kind == "allOf" and len(reader.subschemas) > 1:
                return False
            return any(self._accepts(writer.schema, one) for one in reader.subschemas)
        if writer.subschemas and not reader.subschemas:
            if writer.kind != "allOf" and len(writer.subschemas) > 1:
                return False
            return any(self._accepts(one, reader.schema) for one in writer.subschemas)
        return False

    def _combined(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        older, newer = len(writer.subschemas), len(reader.subschemas)
        if not (
            reader.kind in (writer.kind, "anyOf")
            or (older == 1 and (newer == 1 or reader.kind == "oneOf"))
            or (newer == 1 and writer.kind == "allOf")
        ):
            yield "", f"{writer.kind} was changed to {reader.kind}"
            return
        writers, readers = writer.distinct, reader.distinct
        if len(writers) < len(readers) and reader.kind == "allOf":
            yield "", "allOf was extended"
        elif len(writers) > len(readers) and writer.kind != "allOf":
            yield "", f"{writer.kind} was narrowed"
        accepting = (
            sum(1 << column for column, other in enumerate(readers) if self._accepts(one, other))
            for one in writers
        )
        if _matches_of(list(accepting)) < min(len(writers), len(readers)):
            yield "", f"the subschemas of {writer.kind} were changed"

    def _not(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        # The reader refuses no more values if its inner schema accepts no more than the writer's.
        if not self._accepts(reader.child("not"), writer.child("not")):
            yield "/not", "not was extended"

    def _object(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        older, newer = writer.named("properties"), reader.named("properties")
        required = set(reader.keywords.get("required", ()))
        self._spend(_STEP * (len(older) + len(newer) + len(required)))
        now_required = required.difference(writer.keywords.get("required", ()))
        for name in dict.fromkeys([*older, *newer]):
            if name not in newer:
                found = self._removed("property", older[name], *self._model_of(reader, name))
            elif name not in older:
                model = self._model_of(writer, name)
                found = self._added("property", newer[name], *model)
                if not model[0] and name in required and not _has_default(newer[name]):
                    found = [*found, ("", "a required property without a default was added")]
            else:
                found = self.compare(older[name], newer[name])
                if name in now_required and not _has_default(newer[name]):
                    found = [*found, ("", "the property became required and has no default")]
            yield from _below(f"properties/{name}", found)
        additional = _additional_properties(writer), _additional_properties(reader)
        yield from _below("additionalProperties", self._additional("properties", *additional))
        yield from _below("dependencies", self._dependencies(writer, reader))

    def _model_of(self, node: Node, name: str) -> tuple[bool, Subschema | None]:
        """As `_model`, for a property that the schema does not declare."""
        patterns = node.named("patternProperties")
        self._spend(_STEP * (1 + len(patterns)))
        is_open, covering = _model(_additional_properties(node))
        matching = (schema for pattern, schema in patterns.items() if self._matches(pattern, name))
        return is_open and not patterns, next(matching, covering)

    def _matches(self, pattern: str, name: str) -> bool:
        if pattern not in self._patterns:
            self._spend(_STEP * (len(pattern) // 10))
            self._patterns[pattern] = _compiled(pattern)
            found = self._patterns[pattern]
            self._spend(_STEP * (found.programsize if found else _INSTRUCTIONS_MAX) // 10)
        found = self._patterns[pattern]
        if found is None:
            return False
        self._spend(_STEP * (len(name) * found.programsize // 25_000))
        return found.search(name) is not None

    def _dependencies(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        older, newer = _dependencies(writer), _dependencies(reader)
        self._spend(_STEP * (len(older) + len(newer)))
        for key, dependency in newer.items():
            if key not in older:
                yield f"/{key[1]}", "the dependency was added"
            elif not isinstance(dependency.raw, list):
                yield from _below(key[1], self.compare(older[key], dependency))
            else:
                self._spend(_STEP * (len(dependency.raw) + len(older[key].raw)))
                if more := sorted(set(dependency.raw).difference(older[key].raw)):
                    yield f"/{key[1]}", f"the dependency was extended by {', '.join(more)}"

    def _array(self, writer: Node, reader: Node) -> Iterator[_Reason]:
        older, newer = _items(writer), _items(reader)
        self._spend(_STEP * (len(older.first) + len(newer.first)))
        if newer.each and not older.each:
            yield "/items", "the schema of all items was added"
        elif newer.each and older.each:
            yield from _below("items", self.compare(older.each, newer.each))
        for index in range(max(len(older.first), len(newer.first))):
            if index >= len(newer.first):
                found = self._removed("item", older.first[index], *_model(newer.rest))
            elif index >= len(older.first):
                found = self._added("item", newer.first[index], *_model(older.rest))
            else:
                found = self.compare(older.first[index], newer.first[index])
            yield from _below(f"items/{index}", found)
        yield from _below("additionalItems", self._additional("items", older.rest, newer.rest))

    def _removed(
        self, thing: str, writer: Subschema, is_open: bool, covering: Subschema | None
    ) -> list[_Reason]:
        """Differences by an item or property that only the writer's schema declares."""
        if is_open or (covering is None and self._node(writer).kind == "never"):
            return []
        if covering is None:
            return [("", f"the {thing} was removed from a closed content model")]
        found = self.compare(writer, covering)
        return found and [*found, ("", f"the content model does not cover the removed {thing}")]

    def _added(
        self, thing: str, reader: Subschema, is_open: bool, covering: Subschema | None
    ) -> list[_Reason]:
        """Differences by an item or property that only the reader's schema declares."""
        if is_open:
            is_any = self._node(reader).kind == "any"
            return [] if is_any else [("", f"the {thing} was added to an open content model")]
        found = self.compare(covering, reader) if covering else []
        return found and [*found, ("", f"the content model does not cover the added {thing}")]

    def _additional(self, things: str, writer: Subschema, reader: Subschema) -> list[_Reason]:
        if writer.raw is False or reader.raw is True:
            return []
        if reader.raw is False:
            return [("", f"additional {things} are no longer allowed")]
        if writer.raw is True:
            return [("", f"additional {things} were narrowed")]
        return self.compare(writer, reader)


@dataclass(frozen=True)
class _Items:
    """The schemas of an array: of each item, or of the first items and of the rest."""

    each: Subschema | None
    first: list[Subschema]
    rest: Subschema


def _items(node: Node) -> _Items:
    items, prefix = node.keywords.get("items"), node.keywords.get("prefixItems", [])
    rest = node.keywords.get("additionalItems", node.keywords.get("unevaluatedItems", True))
    if isinstance(items, list):
        items, prefix = None, items
    elif node.schema.draft == "202012" and (prefix or isinstance(items, bool)):
        items, rest = None, rest if items is None else items
    each = None if items is None else node.schema.child(items)
    return _Items(each, [node.schema.child(raw) for raw in prefix], node.schema.child(rest))


def _additional_properties(node: Node) -> Subschema:
    unevaluated = node.keywords.get("unevaluatedProperties", True)
    return node.child("additionalProperties", unevaluated)


def _model(additional: Subschema) -> tuple[bool, Subschema | None]:
    """Whether a content model is open, and the schema of a partially open one."""
    return additional.raw is True, None if isinstance(additional.raw, bool) else additional


def _has_default(schema: Subschema) -> bool:
    return isinstance(schema.raw, dict) and "default" in schema.raw


def _dependencies(node: Node) -> dict[tuple[bool, str], Subschema]:
    """Dependencies by property; a property may have one on other properties and one on a schema."""
    keywords = ("dependencies", "dependentRequired", "dependentSchemas")
    found = [one for keyword in keywords for one in node.named(keyword).items()]
    return {(isinstance(schema.raw, list), name): schema for name, schema in found}


def _matches_of(accepting: list[int]) -> int:
    """The size of a maximum matching of rows to columns, by augmenting paths. The bits of a row are
    its columns. Each row takes at most one step for each column."""
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for start in range(len(accepting)):
        reached_from: dict[int, int] = {}
        passed, waiting = 0, [start]
        while waiting:
            row = waiting[-1]
            columns = accepting[row] & ~passed
            if not columns:
                waiting.pop()
                continue
            column = columns.bit_length() - 1
            passed |= 1 << column
            reached_from[column] = row
            if column in row_of:
                waiting.append(row_of[column])
                continue
            waiting.clear()
            freed: int | None = column
            while freed is not None:
                row = reached_from[freed]
                row_of[freed], column_of[row], freed = row, freed, column_of.get(row)
    return len(row_of)
