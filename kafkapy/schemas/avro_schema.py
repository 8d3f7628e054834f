"""Avro schemas: the text that the registry stores, and whether one can read another's data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import avro.errors
import avro.schema
from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
)
from avro.name import Names

from kafkapy.schemas.parsed_schema import (
    COMPARISONS_MAX,
    TOO_DEEP,
    TOO_MANY_COMPARISONS,
    InvalidSchema,
    ParsedSchema,
    TooManyComparisons,
)

# The order of `org.apache.avro.Schema.toString`, so that equal schemas have one text.
_FIRST_KEYS: Final = ("type", "name", "namespace", "doc", "fields", "symbols", "items", "values",
                      "size", "default", "order")  # fmt: skip
_OF_A_FIELD: Final = ("name", "type", "doc", "default", "order")


class AvroSchema:
    """A parsed schema. `text` is compact JSON in the order of keys of Avro's Java library."""

    def __init__(self, schema: avro.schema.Schema, defined: Names) -> None:
        """`defined` are the types of references, which `text` only names."""
        self.schema = schema
        self.text = json.dumps(_ordered(schema.to_json(defined)), separators=(",", ":"))

    @property
    def identity(self) -> str:
        return self.text

    def formatted(self, name: str) -> str:
        return self.text

    def incompatibilities(self, writer: ParsedSchema) -> list[str]:
        """The reasons of Avro's schema resolution, each with its place in this schema."""
        other = cast(AvroSchema, writer)
        checker = _LimitedChecker()
        try:
            found = checker.get_compatibility(self.schema, other.schema)
        except RecursionError:
            return [TOO_DEEP]
        except TooManyComparisons:
            return [TOO_MANY_COMPARISONS]
        if found.compatibility is SchemaCompatibilityType.compatible:
            return []
        kinds = ", ".join(sorted({each.value for each in found.incompatibilities}))
        places = ", ".join(sorted(found.locations))
        messages = "; ".join(sorted(found.messages))
        return [f"{kinds} at {places}: {messages}"]


class _LimitedChecker(ReaderWriterCompatibilityChecker):
    """A checker that gives up: unions of records with unions take minutes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = COMPARISONS_MAX

    def get_compatibility(self, *args: Any, **more: Any) -> SchemaCompatibilityResult:
        self._left -= 1
        if self._left < 0:
            raise TooManyComparisons
        return super().get_compatibility(*args, **more)


def parse_avro_schema(text: str, references: Mapping[str, str]) -> AvroSchema:
    """Parse a schema. `references` are the texts of the schemas whose types it names, in an order
    in which each comes after those that it refers to itself.

    Raises:
        InvalidSchema: the text is not JSON, or not a schema.
    """
    names = Names()
    try:
        for reference in references.values():
            _parse(reference, names)
        defined = Names()
        defined.names = dict(names.names)
        return AvroSchema(_parse(text, names), defined)
    except RecursionError as error:
        raise InvalidSchema(TOO_DEEP) from error


def _parse(text: str, names: Names) -> avro.schema.Schema:
    try:
        document = json.loads(text, parse_constant=_refuse)
    except ValueError:
        document = text  # a primitive type's bare name
    try:
        return avro.schema.make_avsc_object(document, names)
    except (avro.errors.AvroException, TypeError, AttributeError) as error:
        raise InvalidSchema(str(error) or type(error).__name__) from error


def _refuse(constant: str) -> None:
    """
    Raises:
        ValueError: NaN and infinities are not JSON.
    """
    raise ValueError(constant)


def _ordered(node: Any, is_field: bool = False) -> Any:
    """The JSON of a schema with its keys in order, and a primitive type as its bare name."""
    if isinstance(node, list):
        return [_ordered(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"type"} and isinstance(node["type"], str):
        return node["type"]
    first = _OF_A_FIELD if is_field else _FIRST_KEYS
    found = {key: node[key] for key in first if key in node}
    found |= {key: value for key, value in node.items() if key not in first and key != "aliases"}
    found |= {key: node[key] for key in ("aliases",) if key in node}
    for key in {"type", "items", "values"} & found.keys():
        found[key] = _ordered(found[key])
    if "fields" in found:
        found["fields"] = [_ordered(each, is_field=True) for each in found["fields"]]
    return found
