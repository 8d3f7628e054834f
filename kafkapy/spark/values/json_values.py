"""Decodes JSON values. The columns are the properties of the schema; a part that no column can
have, such as one of several types, is text: its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.json_subschemas import Subschema, load, parsed
from kafkapy.schemas.parsed_schema import TOO_DEEP, InvalidSchema
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.wire_format import CorruptValue, SchemaId

Convert = Callable[[Any], Any]
Test = Callable[[Any], bool]

_NULL: Final = {"type": "null"}


class JsonReader:
    """Reads JSON values as rows of one version of a subject."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """
        Raises:
            ConfigError: the schema is not JSON.
        """
        found = _parse(schema)
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
        found = _parse(schema)
        self.arrow_type: Final = found.arrow
        self.required: Final = found.required
        self._restore: Final = found.restore

    def write(self, value: Any) -> bytes:
        try:
            return orjson.dumps(self._restore(value))
        except _WrongValue as error:
            raise CorruptValue(error.sentence()) from error


def _parse(schema: RegisteredSchema) -> _Type:
    try:
        documents = {name: parsed(text) for name, text in schema.references}
        return _Types().of(load(parsed(schema.text), documents))
    except InvalidSchema as error:
        raise ConfigError(f"schema {schema.schema_id} is not JSON: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"schema {schema.schema_id}: {TOO_DEEP}") from error


class _WrongValue(ValueError):
    """A part of a value cannot be converted. `path` is its place."""

    def __init__(self, fault: str, *path: str) -> None:
        super().__init__(fault)
        self.path: Final = list(path)

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
    required: frozenset[str] = frozenset()
    """The properties of an object that cannot be left out."""
    may_be_null: bool = True


class _Types:
    """The types of one schema, and of those that it refers to."""

    def __init__(self) -> None:
        self._tests: Final[dict[int, Test]] = {}

    def of(
        self,
        schema: Subschema,
        enclosing: tuple[int, ...] = (),
        required: frozenset[str] = frozenset(),
    ) -> _Type:
        """The type of a schema. `enclosing` are the ids of the referenced schemas that lead to it:
        one that leads to itself is text. `required` are the properties that schemas around this one
        require of the same value."""
        found = self._of(schema, enclosing, required)
        return found._replace(may_be_null=self._test(schema)(None))

    def _of(self, schema: Subschema, enclosing: tuple[int, ...], required: frozenset[str]) -> _Type:
        raw = schema.raw
        if not isinstance(raw, dict):
            return self._text(schema)
        if "$ref" in raw:
            target = _target(schema)
            if target is None or id(target.raw) in enclosing:
                return self._text(schema)
            return self.of(target, (*enclosing, id(target.raw)), required)
        if isinstance(names := raw.get("required"), list):
            required |= frozenset(names)
        for word in ("oneOf", "anyOf", "allOf"):
            if word in raw and "properties" not in raw:
                branches = [each for each in raw[word] if each != _NULL]
                if len(branches) > 1:
                    return self._text(schema)
                return self.of(schema.child(branches[0]), enclosing, required)
        kinds = _names_of_types(raw.get("type", "object" if "properties" in raw else None))
        kinds -= {"null"}
        if kinds == {"object"}:
            return self._object(schema, enclosing, required)
        if kinds == {"array"} and isinstance(raw.get("items"), dict):
            return _array(self.of(schema.child(raw["items"]), enclosing))
        if kinds == {"integer", "number"}:
            return _PRIMITIVES["number"]
        primitive = _PRIMITIVES.get(kinds.pop()) if len(kinds) == 1 else None
        return primitive or self._text(schema)

    def _object(
        self, schema: Subschema, enclosing: tuple[int, ...], required: frozenset[str]
    ) -> _Type:
        properties = schema.raw.get("properties")
        if properties:
            types = {k: self.of(schema.child(v), enclosing) for k, v in properties.items()}
            return _struct(types, required)
        values = schema.raw.get("additionalProperties")
        if isinstance(values, dict):
            return _map(self.of(schema.child(values), enclosing))
        return self._text(schema)

    def _text(self, schema: Subschema) -> _Type:
        return _Type(pa.string(), _text, _from_text(self._test(schema)))

    def _test(self, schema: Subschema) -> Test:
        """Whether a schema allows a value, without the content of objects and arrays."""
        known = self._tests
        if not isinstance(schema.raw, dict):
            return lambda _: schema.raw is not False
        if id(schema.raw) not in known:
            known[id(schema.raw)] = lambda _: True  # of a schema that refers to itself
            known[id(schema.raw)] = self._new_test(schema)
        return known[id(schema.raw)]

    def _new_test(self, schema: Subschema) -> Test:
        raw = schema.raw
        if "$ref" in raw:
            target = _target(schema)
            return (lambda _: True) if target is None else self._test(target)
        tests: list[Test] = []
        if kinds := _names_of_types(raw.get("type")) & _TYPE_NAMES:
            tests.append(lambda value: not kinds.isdisjoint(_types_of(value)))
        constants = [raw["const"]] if "const" in raw else raw.get("enum")
        if constants is not None:
            tests.append(lambda value: any(_is_equal(value, each) for each in constants))
        for word, combine in (("allOf", all), ("anyOf", any), ("oneOf", any)):
            if word in raw:
                branches = [self._test(schema.child(each)) for each in raw[word]]
                tests.append(_combined(branches, combine))
        return _combined(tests, all)


def _target(schema: Subschema) -> Subschema | None:
    """The schema that `$ref` names. None if it is not known."""
    try:
        return schema.referenced(schema.raw["$ref"])
    except InvalidSchema:
        return None


def _names_of_types(given: Any) -> set[Any]:
    """The names in the keyword `type`."""
    return set(given if isinstance(given, list) else [given])


def _types_of(value: Any) -> tuple[str, ...]:
    """The names that JSON Schema has for the type of a value."""
    if type(value) is int or (type(value) is float and value.is_integer()):
        return "integer", "number"
    return (_NAMES[type(value)],)


def _is_equal(value: Any, other: Any) -> bool:
    return bool(value == other) and (type(value) is bool) == (type(other) is bool)


def _combined(tests: Sequence[Test], combine: Callable[[Iterable[bool]], bool]) -> Test:
    return lambda value: combine(test(value) for test in tests)


def _struct(types: Mapping[str, _Type], required: frozenset[str]) -> _Type:
    # A required name without a property may have any value.
    nulls = {name: None for name in required if name not in types or types[name].may_be_null}

    def convert(value: Any) -> Any:
        found = _expect(dict, value)
        return {
            name: _convert_at(name, each.convert, found.get(name)) for name, each in types.items()
        }

    def restore(row: Mapping[str, Any]) -> Any:
        found = nulls | {
            name: _convert_at(name, types[name].restore, each)
            for name, each in row.items()
            if each is not None
        }
        if missing := sorted(required - found.keys()):
            raise _WrongValue("null", missing[0])
        return found

    arrow = pa.struct([(name, each.arrow) for name, each in types.items()])
    return _Type(arrow, convert, restore, required)


def _array(item: _Type) -> _Type:
    def convert(value: Any) -> Any:
        found = _expect(list, value)
        return [_convert_at(str(i), item.convert, each) for i, each in enumerate(found)]

    def restore(items: list[Any]) -> Any:
        return [_restore_at(str(i), item, each) for i, each in enumerate(items)]

    return _Type(pa.list_(item.arrow), convert, restore)


def _map(value_type: _Type) -> _Type:
    def convert(value: Any) -> Any:
        found = _expect(dict, value)
        return {name: _convert_at(name, value_type.convert, each) for name, each in found.items()}

    def restore(entries: Mapping[str, Any]) -> Any:
        return {name: _restore_at(name, value_type, each) for name, each in entries.items()}

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


def _restore_at(name: str, given: _Type, value: Any) -> Any:
    """The restored part of an array or a map.

    Raises:
        _WrongValue: it cannot be restored, or it is null, which its schema does not allow.
    """
    if value is None and not given.may_be_null:
        raise _WrongValue("null", name)
    return _convert_at(name, given.restore, value)


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


def _from_text(allows: Test) -> Convert:
    """The reverse of `_text` for a schema: the JSON in a text that is an object or an array, or a
    value of another type than string if the schema does not allow the string."""

    def restore(text: str) -> Any:
        """
        Raises:
            _WrongValue: the schema allows neither the string nor the JSON in it.
        """
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            found = text
        if isinstance(found, dict | list) and allows(found):
            return orjson.Fragment(text)
        if allows(text):
            return text
        if isinstance(found, str) or not allows(found):
            raise _WrongValue("not allowed by the schema")
        return orjson.Fragment(text)

    return restore


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
_TYPE_NAMES: Final = frozenset(_NAMES.values())
_PRIMITIVES: Final[dict[Any, _Type]] = {
    "integer": _Type(pa.int64(), _integer, _same),
    "number": _Type(pa.float64(), _number, _finite),
    "boolean": _Type(pa.bool_(), lambda value: _expect(bool, value), _same),
    "string": _Type(pa.string(), lambda value: _expect(str, value), _same),
}
