"""The types of Avro schemas, read by the rules of Avro's Java library (org.apache.avro.Schema), so
that schemas of the registry are those that Java's clients can parse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeGuard

from kafkapy.schemas.parsed_schema import InvalidSchema, json_of

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
RECORDS: Final = ("record", "error")
NAMED: Final = (*RECORDS, "enum", "fixed")
INNER_KEYS: Final = {"array": "items", "map": "values"}
"""The key of the type inside, by type."""
_ORDERS: Final = ("ascending", "descending", "ignore")
# The keys that are no properties of a type, and of a field.
_RESERVED: Final = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "items", "values", "size")
)
_RESERVED_OF_FIELDS: Final = frozenset(("name", "type", "doc", "default", "order", "aliases"))
_SIZE_MAX: Final = 2**31 - 9  # of an array in Java
_LONG: Final = range(-(2**63), 2**63)
ABSENT: Final = object()


@dataclass(eq=False)
class AvroType:
    """A type. `type` is its kind; a kind has only some of the attributes. `fullname` and `aliases`
    have the namespace. `props` are logicalType and what the specification does not name."""

    type: str
    props: dict[str, Any] = field(default_factory=dict)
    fullname: str = ""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    inner: tuple[AvroType, ...] = ()
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0

    @property
    def name(self) -> str:
        """The name of a branch of a union, which must differ from those of the others."""
        return self.fullname or self.type

    @property
    def namespace(self) -> str:
        return self.fullname.rpartition(".")[0]


class Field(NamedTuple):
    """A field of a record. `default` is JSON, or `ABSENT`."""

    name: str
    type: AvroType
    doc: str | None
    default: Any
    order: str
    aliases: tuple[str, ...]
    props: Mapping[str, Any]

    @property
    def has_default(self) -> bool:
        return self.default is not ABSENT


def full_name(name: str, namespace: str) -> str:
    """A name with its namespace: its own, or else the one in which it stands."""
    space, dot, last = name.rpartition(".")
    space = space if dot else namespace
    return f"{space}.{last}" if space else last


def simple_name(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(".")[2]


class Reader:
    """Reads schemas. Each may use the types of those before it."""

    def __init__(self) -> None:
        self._types: dict[str, AvroType] = {}

    def read(self, text: str) -> AvroType:
        """
        Raises:
            InvalidSchema: the text is not JSON, or not a schema.
        """
        return self._type(json_of(text), "")

    def _type(self, given: Any, namespace: str) -> AvroType:
        if isinstance(given, str):
            return self._named(given, namespace)
        if isinstance(given, list):
            return self._union(given, namespace)
        if not isinstance(given, dict):
            raise InvalidSchema(f"{_short(given)} is not a type")
        kind = given.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f'{_short(given)} has no "type" that is a name')
        if kind in NAMED:
            return self._definition(kind, given, namespace)
        props = _props(given, _RESERVED)
        if key := INNER_KEYS.get(kind):
            if key not in given:
                raise InvalidSchema(f'{_short(given)} has no "{key}"')
            return AvroType(kind, props, inner=(self._type(given[key], namespace),))
        if kind in PRIMITIVES:
            return AvroType(kind, props)
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        for each in (full_name(name, namespace), name):
            if each in self._types:
                return self._types[each]
        raise InvalidSchema(f"The type {name} is not defined")

    def _union(self, given: list[Any], namespace: str) -> AvroType:
        branches = tuple(self._type(each, namespace) for each in given)
        names = [each.name for each in branches]
        if "union" in names:
            raise InvalidSchema("A union directly contains a union")
        _check_different(names, "Two types of a union are")
        return AvroType("union", inner=branches)

    def _definition(self, kind: str, given: dict[str, Any], namespace: str) -> AvroType:
        name, space = given.get("name"), given.get("namespace")
        if not isinstance(name, str):
            raise InvalidSchema(f"{_short(given)} has no name")
        fullname = full_name(name, space if isinstance(space, str) else namespace)
        for each in fullname.split("."):
            _check_name(each)
        if fullname in PRIMITIVES:
            raise InvalidSchema(f"A type may not have the name of a primitive type: {fullname}")
        if fullname in self._types:
            raise InvalidSchema(f"The type {fullname} is defined twice")
        reserved = _RESERVED | {"default"} if kind == "enum" else _RESERVED
        found = AvroType(kind, _props(given, reserved), fullname, _text(given.get("doc")))
        found.aliases = tuple(
            dict.fromkeys(full_name(each, found.namespace) for each in _aliases(given))
        )
        for alias in found.aliases:
            _check_name(simple_name(alias))
        self._types[fullname] = found
        if kind in RECORDS:
            found.fields = self._fields(given, found)
        elif kind == "enum":
            found.symbols = _symbols(given, fullname)
            found.default = _text(given.get("default"))
            if found.default is not None and found.default not in found.symbols:
                raise InvalidSchema(f"The default of {fullname} is none of its symbols")
        else:
            found.size = _size(given, fullname)
        return found

    def _fields(self, given: dict[str, Any], record: AvroType) -> tuple[Field, ...]:
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"The record {record.fullname} has no list of fields")
        found = tuple(self._field(each, record) for each in fields)
        _check_different([each.name for each in found], f"Two fields of {record.fullname} are")
        return found

    def _field(self, given: Any, record: AvroType) -> Field:
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(name, str):
            raise InvalidSchema(f"A field of {record.fullname} has no name: {_short(given)}")
        _check_name(name)
        where = f"The field {record.fullname}.{name}"
        if "type" not in given:
            raise InvalidSchema(f"{where} has no type")
        kind = self._type(given["type"], record.namespace)
        order = _text(given.get("order", "ascending")) or ""
        if order.lower() not in _ORDERS:
            raise InvalidSchema(f"{where} has an order that is none of {', '.join(_ORDERS)}")
        default = given.get("default", ABSENT)
        if kind.type in ("float", "double") and isinstance(default, str):
            default = _number(default, where)
        return Field(
            name,
            kind,
            _text(given.get("doc")),
            default,
            order.lower(),
            tuple(dict.fromkeys(_aliases(given))),
            _props(given, _RESERVED_OF_FIELDS),
        )


def is_valid_default(kind: AvroType, value: Any) -> bool:
    """Whether JSON is a default of a type (Java's `Schema.isValidDefault`)."""
    match kind.type:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind.type == "int" else 63
            return is_integer(value) and -(1 << bits) <= value < 1 << bits
        case "float" | "double":
            return is_integer(value) or isinstance(value, float)
        case "array":
            inner = kind.inner[0]
            return isinstance(value, list) and all(is_valid_default(inner, e) for e in value)
        case "map":
            inner = kind.inner[0]
            return isinstance(value, dict) and all(
                is_valid_default(inner, each) for each in value.values()
            )
        case "union":
            return any(is_valid_default(each, value) for each in kind.inner)
        case "record" | "error":
            return isinstance(value, dict) and all(
                is_valid_default(each.type, value.get(each.name, each.default))
                for each in kind.fields
            )
    return isinstance(value, str)


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value of JSON is an integer; `bool` is an `int` in Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def _number(text: str, where: str) -> float | str:
    """A number that is given as a text. NaN and the infinities remain texts."""
    if text in ("NaN", "Infinity", "-Infinity"):
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidSchema(f"{where} has a default that is not a number") from None


def _text(given: Any) -> str | None:
    return given if isinstance(given, str) else None


def _aliases(given: Mapping[str, Any]) -> list[str]:
    found = given.get("aliases", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidSchema(f'{_short(given)} has "aliases" that are not a list of names')
    return found


def _props(given: Mapping[str, Any], reserved: Iterable[str]) -> dict[str, Any]:
    found = {key: value for key, value in given.items() if key not in reserved}
    for key, value in found.items():
        if isinstance(value, int) and value not in _LONG:
            raise InvalidSchema(f"The property {key} is not in the range of a long")
    return found


def _symbols(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = given.get("symbols")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidSchema(f"The enum {name} has no list of symbols")
    for each in found:
        _check_name(each)
    _check_different(found, f"Two symbols of {name} are")
    return tuple(found)


def _size(given: Mapping[str, Any], name: str) -> int:
    found = given.get("size")
    if not is_integer(found) or not 0 <= found <= _SIZE_MAX:
        raise InvalidSchema(f"The fixed {name} has no size from 0 to {_SIZE_MAX}")
    return found


def _check_name(name: str) -> None:
    """Letters, digits and underscores of any script, and no digit first."""
    letters = name.replace("_", "a")
    if not (letters[:1].isalpha() and all(each.isalpha() or each.isdecimal() for each in letters)):
        raise InvalidSchema(f"{name!r} is not a name")


def _check_different(names: list[str], what: str) -> None:
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise InvalidSchema(f"{what} {each}")
        seen.add(each)


def _short(given: Any) -> str:
    """The beginning of the JSON of a part of a schema."""
    text = json.dumps(given)
    return text if len(text) <= 80 else f"{text[:80]}…"
