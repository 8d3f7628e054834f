"""Avro's JSON encoding: a value of a union has the name of its type, and bytes are text.

Numbers and texts are read by Apache Avro's library: fastavro would end the process for values that
are nested too deeply.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final

import avro.errors
import avro.io

from kafkapy.schemas.avro_types import RECORDS, AvroType, Field
from kafkapy.schemas.wire_format import CorruptValue

# Values of null and records without fields take no bytes: the limit of the values inside a value,
# with their containers.
_VALUES_MAX: Final = 1_000_000
_VALUES_MAX_PER_BYTE: Final = 10
# The exceptions of the library for bytes that are not of the schema.
_MALFORMED: Final = (
    *(avro.errors.AvroException, ValueError, LookupError, TypeError, ArithmeticError),
    RecursionError,
)
_FLOATS: Final = ("float", "double")
_BITS: Final = {"int": 32, "long": 64}
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}
"""The classes of JSON for each type; text for others."""

# Numbers that JSON does not have, by Python's names.
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def from_avro(schema: AvroType, payload: bytes) -> Any:
    """The JSON of a value.

    Raises:
        CorruptValue: the payload is not of the schema.
    """
    try:
        return _read(schema, _Decoder(payload))
    except _MALFORMED as error:
        reason = str(error) or type(error).__name__
        raise CorruptValue(f"it is not of its schema: {reason}") from error


def to_avro(schema: AvroType, value: Any) -> bytes:
    """The value of a JSON. A field with a default may be missing, and a value of a union of null
    and another type need not have the name of its type.

    Raises:
        CorruptValue: the JSON is not of the schema; with the place.
    """
    output = BytesIO()
    try:
        _write(schema, value, avro.io.BinaryEncoder(output), "the value")
    except RecursionError as error:
        raise CorruptValue("the value is nested too deeply") from error
    return output.getvalue()


class _Decoder(avro.io.BinaryDecoder):
    """A decoder of one value, which limits the values inside."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(BytesIO(payload))
        self._left = _VALUES_MAX + _VALUES_MAX_PER_BYTE * len(payload)

    def count_value(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError("it has too many values for its size")


def _read(schema: AvroType, decoder: _Decoder) -> Any:
    decoder.count_value()
    kind = schema.type
    if kind in _READS:
        return _READS[kind](decoder)
    if kind == "fixed":
        return decoder.read(schema.size).decode("latin-1")
    if kind == "enum":
        return schema.symbols[_index(decoder)]
    if kind == "array":
        return [_read(schema.inner[0], decoder) for _ in _items(decoder)]
    if kind == "map":
        values = schema.inner[0]
        return {decoder.read_utf8(): _read(values, decoder) for _ in _items(decoder)}
    if kind == "union":
        branch = schema.inner[_index(decoder)]
        value = _read(branch, decoder)
        return None if branch.type == "null" else {branch.name: value}
    return {field.name: _read(field.type, decoder) for field in schema.fields}


def _index(decoder: avro.io.BinaryDecoder) -> int:
    """The index of a symbol or a branch. Python would count a negative one from the end."""
    index: int = decoder.read_long()
    if index < 0:
        raise ValueError(f"the index {index} is negative")
    return index


def _items(decoder: avro.io.BinaryDecoder) -> Iterator[None]:
    """One element for each item of an array or a map, which are in blocks."""
    while count := decoder.read_long():
        if count < 0:
            decoder.read_long()  # the size in bytes
        yield from (None for _ in range(abs(count)))


_READS: Final[dict[str, Callable[[avro.io.BinaryDecoder], Any]]] = {
    "null": lambda _: None,
    "boolean": lambda decoder: decoder.read_boolean(),
    "int": lambda decoder: decoder.read_int(),
    "long": lambda decoder: decoder.read_long(),
    "float": lambda decoder: _number(decoder.read_float()),
    "double": lambda decoder: _number(decoder.read_double()),
    "bytes": lambda decoder: decoder.read_bytes().decode("latin-1"),
    "string": lambda decoder: decoder.read_utf8(),
}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else _NOT_FINITE[str(value)]


def _write(schema: AvroType, value: Any, encoder: avro.io.BinaryEncoder, place: str) -> None:
    kind = schema.type
    if kind == "union":
        index, value = _branch(schema.inner, value, place)
        encoder.write_long(index)
        _write(schema.inner[index], value, encoder, place)
    elif kind in _FLOATS and value in _NOT_FINITE.values():
        _WRITES[kind](encoder, value)
    elif type(value) not in _CLASSES.get(kind, (str,)):
        raise CorruptValue(f"{place} is not of the type {kind}")
    elif kind in RECORDS:
        _write_record(schema.fields, value, encoder, place)
    elif kind == "array":
        encoder.write_long(len(value))
        for i, each in enumerate(value):
            _write(schema.inner[0], each, encoder, f"{place}.{i}")
        if value:
            encoder.write_long(0)
    elif kind == "map":
        encoder.write_long(len(value))
        for name, each in value.items():
            _write_text(encoder, name, f"a key of {place}")
            _write(schema.inner[0], each, encoder, f"{place}.{name}")
        if value:
            encoder.write_long(0)
    else:
        _write_simple(schema, value, encoder, place)


def _write_record(
    fields: tuple[Field, ...], value: dict[str, Any], encoder: avro.io.BinaryEncoder, place: str
) -> None:
    if unknown := value.keys() - {each.name for each in fields}:
        raise CorruptValue(f"{place} has no field {', '.join(sorted(unknown))}")
    for each in fields:
        here = f"{place}.{each.name}"
        if each.name in value:
            _write(each.type, value[each.name], encoder, here)
        elif each.has_default:
            _write_default(each.type, each.default, encoder, here)
        else:
            raise CorruptValue(f"{here} is missing")


def _write_default(
    schema: AvroType, value: Any, encoder: avro.io.BinaryEncoder, place: str
) -> None:
    """A default is a value of the first type of a union."""
    if schema.type == "union":
        encoder.write_long(0)
        schema = schema.inner[0]
    _write(schema, value, encoder, place)


def _write_simple(schema: AvroType, value: Any, encoder: avro.io.BinaryEncoder, place: str) -> None:
    kind = schema.type
    if kind in (*_BITS, *_FLOATS) and not _is_in_range(kind, value):
        raise CorruptValue(f"{place} is out of the range of the type {kind}")
    if kind == "enum":
        if value not in schema.symbols:
            raise CorruptValue(f"{place} is none of {', '.join(schema.symbols)}")
        encoder.write_int(schema.symbols.index(value))
    elif kind in ("bytes", "fixed"):
        try:
            content = value.encode("latin-1")
        except UnicodeEncodeError as error:
            raise CorruptValue(f"{place} has a character beyond \\u00ff") from error
        if kind == "bytes":
            encoder.write_bytes(content)
        elif len(content) == schema.size:
            encoder.write(content)
        else:
            raise CorruptValue(f"{place} has {len(content)} bytes instead of {schema.size}")
    elif kind == "string":
        _write_text(encoder, value, place)
    else:
        _WRITES[kind](encoder, value)


def _is_in_range(kind: str, value: float) -> bool:
    if kind in _BITS:
        return -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1
    try:
        struct.pack("<f" if kind == "float" else "<d", float(value))
    except OverflowError:
        return False
    return math.isfinite(value)


def _write_text(encoder: avro.io.BinaryEncoder, text: str, place: str) -> None:
    try:
        encoder.write_utf8(text)
    except UnicodeEncodeError as error:
        raise CorruptValue(f"{place} has half of a surrogate pair") from error


_WRITES: Final[dict[str, Callable[[avro.io.BinaryEncoder, Any], None]]] = {
    "null": lambda _encoder, _value: None,
    "boolean": lambda encoder, value: encoder.write_boolean(value),
    "int": lambda encoder, value: encoder.write_int(value),
    "long": lambda encoder, value: encoder.write_long(value),
    "float": lambda encoder, value: encoder.write_float(float(value)),
    "double": lambda encoder, value: encoder.write_double(float(value)),
}


def _branch(branches: tuple[AvroType, ...], value: Any, place: str) -> tuple[int, Any]:
    """The index of the branch of a value, and the value in it."""
    names = [each.name for each in branches]
    if value is None and "null" in names:
        return names.index("null"), None
    if isinstance(value, dict) and len(value) == 1:
        ((name, content),) = value.items()
        if name in names:
            return names.index(name), content
    others = [name for name in names if name != "null"]
    if len(others) == 1:
        return names.index(others[0]), value
    raise CorruptValue(f"{place} is not {{TYPE: VALUE}} with one of the types {', '.join(names)}")
