"""The columns of Avro schemas, with the types of Spark's own `from_avro` (`SchemaConverters`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kafkapy.common.errors import ConfigError

Convert = Callable[[Any], Any]

RECORD_NAME: Final = "__kafkapy_record"
"""A field that readers add to records in unions: its default is the record's full name."""

_PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Final[dict[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_WIDER: Final = {
    frozenset(("int", "long")): pa.int64(),
    frozenset(("float", "double")): pa.float64(),
}
# The classes of the values that fastavro returns for the branches of a union.
_CLASSES: Final[dict[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}
_DECIMAL_DIGITS_MAX: Final = 38


class AvroType(NamedTuple):
    """The Arrow type of an Avro type."""

    arrow: pa.DataType
    convert: Convert | None = None
    """Makes pyarrow's input of fastavro's value, where they differ: unions become structs."""
    restore: Convert | None = None
    """The reverse: makes fastavro's input of pyarrow's value."""
    is_empty: bool = False
    """Whether its values take no bytes."""


class AvroTypes:
    """The types of one schema. `names` has the definitions of its named types, as
    `fastavro.parse_schema` collects them."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.has_unions_of_records = False
        self._names: Final = names
        self._enclosing: Final[list[str]] = []

    def of(self, schema: Any, path: str = "") -> AvroType:
        """The type of a parsed schema. `path` is its place in the whole schema, for messages.

        Raises:
            ConfigError: no column can have this type.
        """
        if isinstance(schema, list):
            return self._union([self._definition(each) for each in schema], path)
        schema = self._definition(schema)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, path)
        if kind == "array":
            return _array(self.of(schema["items"], f"{path}[]"), path)
        if kind == "map":
            value = self.of(schema["values"], f"{path}{{}}")
            arrow = pa.map_(pa.string(), value.arrow)
            return AvroType(arrow, _of_map(value.convert), _of_map(value.restore))
        is_empty = kind == "null" or (kind == "fixed" and not schema["size"])
        # fastavro writes false for a null.
        restore = _refuse_null(path) if kind == "boolean" else None
        return AvroType(_simple(kind, schema, path), restore=restore, is_empty=is_empty)

    def default(self, value: Any, schema: Any) -> Any:
        """The value that fastavro would read, for a field's default in the JSON of a schema. Old
        schemas have defaults of other types, which stay as they are."""
        schema = self._definition(schema[0] if isinstance(schema, list) else schema)
        if isinstance(value, str) and schema["type"] in ("bytes", "fixed"):
            content = value.encode("latin-1", "replace")
            if schema.get("logicalType") != "decimal":
                return content
            return Decimal(int.from_bytes(content, signed=True)).scaleb(-schema.get("scale", 0))
        if isinstance(value, list) and "items" in schema:
            return [self.default(each, schema["items"]) for each in value]
        if not isinstance(value, dict):
            return value
        if "fields" in schema:
            types = {each["name"]: each["type"] for each in schema["fields"]}
            known = {key: self.default(value[key], types[key]) for key in types.keys() & value}
            return known | {RECORD_NAME: schema["name"]}
        return {
            key: self.default(each, schema.get("values", "null")) for key, each in value.items()
        }

    def _definition(self, schema: Any) -> Any:
        """The definition of a name, and `{"type": "int"}` of "int"."""
        return self._names.get(schema, {"type": schema}) if isinstance(schema, str) else schema

    def _record(self, schema: Mapping[str, Any], path: str) -> AvroType:
        name = schema["name"]
        if name in self._enclosing:
            raise ConfigError(f"{path.lstrip('.')}: {name} contains itself, which no column can")
        self._enclosing.append(name)
        fields = {
            each["name"]: self.of(each["type"], f"{path}.{each['name']}")
            for each in schema["fields"]
        }
        self._enclosing.pop()
        return AvroType(
            pa.struct([(key, each.arrow) for key, each in fields.items()]),
            _of_record({key: each.convert for key, each in fields.items()}),
            _of_record({key: each.restore for key, each in fields.items()}),
            all(each.is_empty for each in fields.values()),
        )

    def _union(self, branches: list[Any], path: str) -> AvroType:
        """A type with null is nullable; int and long are long; others are a struct in which one
        member has a value.
        """
        others = [each for each in branches if each["type"] != "null"]
        if len(others) < 2:
            found = self.of((others or branches)[0], path)
            return found._replace(restore=_unless_null(found.restore), is_empty=False)
        wider = _WIDER.get(frozenset(each["type"] for each in others))
        if wider is not None:
            return AvroType(wider)
        members = [self.of(each, f"{path}.member{i}") for i, each in enumerate(others)]
        self.has_unions_of_records |= any("fields" in each for each in others)
        arrow = pa.struct([(f"member{i}", each.arrow) for i, each in enumerate(members)])
        return AvroType(arrow, _of_union(others, members), _to_union(others, members))


def _simple(kind: str, schema: Mapping[str, Any], path: str) -> pa.DataType:
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > _DECIMAL_DIGITS_MAX:
            raise ConfigError(
                f"{path.lstrip('.')}: a decimal of {precision} digits; Spark's have at most "
                f"{_DECIMAL_DIGITS_MAX}"
            )
        return pa.decimal128(precision, scale)
    return _LOGICAL.get((kind, str(logical)), _PRIMITIVES[kind])


def _array(item: AvroType, path: str) -> AvroType:
    if item.is_empty:  # a few bytes could stand for any number of them
        raise ConfigError(f"{path.lstrip('.')}: an array of items without content")
    return AvroType(pa.list_(item.arrow), _of_array(item.convert), _of_array(item.restore))


def _refuse_null(path: str) -> Convert:
    def restore(value: Any) -> Any:
        if value is None:
            raise ValueError(f"{path.lstrip('.')} is null")
        return value

    return restore


def _unless_null(convert: Convert | None) -> Convert | None:
    return convert and (lambda value: None if value is None else convert(value))


def _of_record(fields: Mapping[str, Convert | None]) -> Convert | None:
    given = {name: each for name, each in fields.items() if each is not None}
    if not given:
        return None

    def convert(value: Any) -> Any:
        return value and value | {
            name: each(value[name]) for name, each in given.items() if name in value
        }

    return convert


def _of_array(of_item: Convert | None) -> Convert | None:
    if of_item is None:
        return None
    return lambda value: value and [of_item(each) for each in value]


def _of_map(of_value: Convert | None) -> Convert | None:
    if of_value is None:
        return None
    return lambda value: value and {key: of_value(each) for key, each in value.items()}


def _of_union(branches: list[Any], members: list[AvroType]) -> Convert:
    tests = [(f"member{i}", _test_of(each), members[i].convert) for i, each in enumerate(branches)]
    # A symbol of an enum is a string too, bytes of the right size are of a fixed type, and records
    # are maps.
    by_type = zip(branches, tests, strict=True)
    tests = [test for _, test in sorted(by_type, key=lambda pair: "name" not in pair[0])]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        member, of_member = next((name, each) for name, test, each in tests if test(value))
        return {member: value if of_member is None else of_member(value)}

    return convert


def _test_of(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Whether a value in a union is of this branch."""
    kind = schema["type"]
    if "fields" in schema:
        name = schema["name"]
        return lambda value: type(value) is dict and value.get(RECORD_NAME) == name
    if schema.get("logicalType") == "decimal":
        return lambda value: type(value) is Decimal
    if kind == "enum":
        symbols = frozenset(schema["symbols"])
        return lambda value: type(value) is str and value in symbols
    if kind == "fixed":
        size = schema["size"]
        return lambda value: type(value) is bytes and len(value) == size
    expected = _CLASSES[kind]
    return lambda value: type(value) is expected


def _to_union(branches: list[Any], members: list[AvroType]) -> Convert:
    """Named types need their name, because the values of two may look the same."""
    by_member = {
        f"member{i}": (each.get("name"), members[i].restore) for i, each in enumerate(branches)
    }

    def restore(value: Any) -> Any:
        for member, content in (value or {}).items():
            if content is not None:
                name, of_member = by_member[member]
                content = content if of_member is None else of_member(content)
                return content if name is None else (name, content)
        return None

    return restore
