"""Decodes JSON values. The columns are the properties of the schema; a part that no column can
have, such as one of several types, is text: its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

import orjson
import pyarrow as pa

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.wire_format import CorruptValue, SchemaId

Convert = Callable[[Any], Any]

_NULL: Final = {"type": "null"}


class JsonReader:
    """Reads JSON values as rows of one version of a subject."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """
        Raises:
            ConfigError: the schema is not JSON.
        """
        _, found = _parse(schema)
        self.arrow_type: Final = found.arrow
        self._convert: Final = found.convert

    def read(self, schema_id: SchemaId, payload: bytes) -> Any:
        try:
            return self._value(payload)
        except orjson.JSONDecodeError as error:
            raise CorruptValue(f"it is not JSON: {error}") from error
        except (RecursionError, orjson.JSONEncodeError) as error:  # of a part that becomes text
            raise CorruptValue("it is nested too deeply") from error
        except _WrongValue as error:
            raise CorruptValue(error.sentence()) from error

    def _value(self, payload: bytes) -> Any:
        value = orjson.loads(payload)
        try:
            return None if value is None else self._convert(value)
        except _InexactText:
            # orjson reads 1.10 as 1.1, and an integer of more than 64 bits as a float.
            digits = json.loads(payload, parse_float=orjson.Fragment, parse_int=orjson.Fragment)
            return self._convert(digits)


class JsonWriter:
    """Writes rows as JSON. Nulls are left out, except for required properties that may be null."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """
        Raises:
            ConfigError: the schema is not JSON.
        """
        self.schema_id: Final = schema.schema_id
        root, found = _parse(schema)
        self.arrow_type: Final = found.arrow
        self._restore: Final = found.restore
        if not pa.types.is_struct(found.arrow):
            root = {}
        self.required: Final = frozenset(map(str, root.get("required", ())))
        properties = root.get("properties", {})
        self._null: Final = {
            name: None for name in self.required if _may_be_null(properties.get(name))
        }

    def write(self, value: Any) -> bytes:
        try:
            found = self._restore(value)
        except _WrongValue as error:
            raise CorruptValue(error.sentence()) from error
        if pa.types.is_struct(self.arrow_type):
            found = self._null | found
            if missing := sorted(self.required - found.keys()):
                raise CorruptValue(f"{', '.join(missing)} is null")
        return orjson.dumps(found)


def _may_be_null(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return schema is not False
    return (
        "null" in schema.get("type", ())
        or any(_NULL in schema.get(word, ()) for word in ("oneOf", "anyOf"))
        or not schema
    )


def _parse(schema: RegisteredSchema) -> tuple[Any, _Type]:
    try:
        documents = {name: json.loads(text) for name, text in schema.references}
        root = json.loads(schema.text)
    except ValueError as error:
        raise ConfigError(f"schema {schema.schema_id} is not JSON: {error}") from error
    return root, _Types(root, documents).of(root, "", ())


class _WrongValue(ValueError):
    """A part of a value cannot be converted. `path` is its place."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.path: list[str] = []

    def sentence(self) -> str:
        place = ".".join(self.path)
        return f"its {place} is {self}" if place else f"it is {self}"


class _InexactText(Exception):
    """A part that becomes text has numbers whose digits are not known."""


class _Type(NamedTuple):
    """The Arrow type of a schema, the conversion of a value that is not null to pyarrow's input,
    and its reverse. Both raise _WrongValue."""

    arrow: pa.DataType
    convert: Convert
    restore: Convert


class _Types:
    """The types of one schema, and of those that it refers to by name."""

    def __init__(self, root: Any, documents: Mapping[str, Any]) -> None:
        self._root: Final = root
        self._documents: Final = documents

    def of(self, schema: Any, base: str, enclosing: tuple[str, ...]) -> _Type:
        """The type of a schema. `base` is the name of its document, "" for the root. `enclosing`
        are the references that lead to it: one that leads to itself is text."""
        if not isinstance(schema, dict):
            return _TEXT
        if "$ref" in schema:
            target = urljoin(base, str(schema["$ref"]))
            if target in enclosing:
                return _TEXT
            document, _ = urldefrag(target)
            return self.of(self._find(target), document, (*enclosing, target))
        for word in ("oneOf", "anyOf", "allOf"):
            if word in schema and "properties" not in schema:
                branches = [each for each in schema[word] if each != _NULL]
                return self.of(branches[0], base, enclosing) if len(branches) == 1 else _TEXT
        given = schema.get("type", "object" if "properties" in schema else None)
        kinds = set(given if isinstance(given, list) else [given]) - {"null"}
        if kinds == {"object"}:
            return self._object(schema, base, enclosing)
        if kinds == {"array"} and isinstance(schema.get("items"), dict):
            return _array(self.of(schema["items"], base, enclosing))
        if kinds == {"integer", "number"}:
            return _PRIMITIVES["number"]
        return _PRIMITIVES.get(kinds.pop(), _TEXT) if len(kinds) == 1 else _TEXT

    def _object(self, schema: Mapping[str, Any], base: str, enclosing: tuple[str, ...]) -> _Type:
        properties = schema.get("properties")
        if properties:
            return _struct({k: self.of(each, base, enclosing) for k, each in properties.items()})
        values = schema.get("additionalProperties")
        return _map(self.of(values, base, enclosing)) if isinstance(values, dict) else _TEXT

    def _find(self, target: str) -> Any:
        """The schema with a URI: a document's name, and a pointer to a part of it. None if it is
        not known."""
        name, pointer = urldefrag(target)
        found = self._documents.get(name) if name else self._root
        for word in pointer.split("/")[1:]:
            key = unquote(word).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found


def _struct(types: Mapping[str, _Type]) -> _Type:
    def convert(value: Any) -> Any:
        found = _expect(dict, value)
        return {
            name: _convert_at(name, each.convert, found.get(name)) for name, each in types.items()
        }

    def restore(row: Mapping[str, Any]) -> Any:
        return {
            name: _convert_at(name, types[name].restore, each)
            for name, each in row.items()
            if each is not None
        }

    return _Type(pa.struct([(name, each.arrow) for name, each in types.items()]), convert, restore)


def _array(item: _Type) -> _Type:
    def convert(value: Any) -> Any:
        found = _expect(list, value)
        return [_convert_at(str(i), item.convert, each) for i, each in enumerate(found)]

    def restore(items: list[Any]) -> Any:
        return [_convert_at(str(i), item.restore, each) for i, each in enumerate(items)]

    return _Type(pa.list_(item.arrow), convert, restore)


def _map(value_type: _Type) -> _Type:
    def convert(value: Any) -> Any:
        found = _expect(dict, value)
        return {name: _convert_at(name, value_type.convert, each) for name, each in found.items()}

    def restore(entries: Mapping[str, Any]) -> Any:
        return {k: _convert_at(k, value_type.restore, each) for k, each in entries.items()}

    return _Type(pa.map_(pa.string(), value_type.arrow), convert, restore)


def _convert_at(name: str, convert: Convert, value: Any) -> Any:
    """The converted part of a value, or None for null.

    Raises:
        _WrongValue: it cannot be converted.
    """
    if value is None:
        return None
    try:
        return convert(value)
    except _WrongValue as error:
        error.path.insert(0, name)
        raise


def _expect(expected: type, value: Any) -> Any:
    """
    Raises:
        _WrongValue: the value is of another type.
    """
    value = _plain(value)
    if type(value) is not expected:
        raise _WrongValue(f"of the type {_NAMES[type(value)]}, not {_NAMES[expected]}")
    return value


def _plain(value: Any) -> Any:
    """The number that is given by its digits, or another value as it is."""
    return orjson.loads(orjson.dumps(value)) if type(value) is orjson.Fragment else value


def _integer(value: Any) -> int:
    value = _plain(value)
    if type(value) is float and value.is_integer():  # as JSON Schema says
        return int(value)
    return int(_expect(int, value))


def _number(value: Any) -> float:
    value = _plain(value)
    return float(value if type(value) is int else _expect(float, value))


def _finite(value: float) -> float:
    """
    Raises:
        _WrongValue: the number would become null.
    """
    if not math.isfinite(value):
        raise _WrongValue(f"{value}, which JSON does not have")
    return value


def _text(value: Any) -> str:
    """
    Raises:
        _InexactText: the value has floats.
    """
    if _has_float(value):
        raise _InexactText
    return value if type(value) is str else orjson.dumps(value).decode()


def _has_float(value: Any) -> bool:
    if type(value) in (dict, list):
        return any(map(_has_float, value.values() if type(value) is dict else value))
    return type(value) is float


def _from_text(text: str) -> Any:
    """The JSON in a text that is an object or an array, as it is, and otherwise the text."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.Fragment(text) if isinstance(found, dict | list) else text


def _same(value: Any) -> Any:
    return value


_NAMES: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_TEXT: Final = _Type(pa.string(), _text, _from_text)
_PRIMITIVES: Final[dict[Any, _Type]] = {
    "integer": _Type(pa.int64(), _integer, _same),
    "number": _Type(pa.float64(), _number, _finite),
    "boolean": _Type(pa.bool_(), lambda value: _expect(bool, value), _same),
    "string": _Type(pa.string(), lambda value: _expect(str, value), _same),
}
