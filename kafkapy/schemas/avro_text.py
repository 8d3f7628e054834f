"""The JSON of Avro's types, as Avro's Java library writes it (`Schema.toString`).

All registries store this text and compute GUIDs from it, so it has to be the same to the byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from kafkapy.schemas.avro_types import (
    ABSENT,
    INNER_KEYS,
    NAMED,
    PRIMITIVES,
    RECORDS,
    AvroType,
    Field,
    is_integer,
    simple_name,
)

_ESCAPE: Final = re.compile(r"\\(?:u00[01][0-9a-f]|.)")
# The logical types that Java knows, by the types that may have them.
_LOGICAL: Final = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        *(f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp")
          for unit in ("millis", "micros", "nanos")),
    ),
    "bytes": ("decimal", "big-decimal"),
    "string": ("uuid",),
    "fixed": ("decimal", "uuid", "duration"),
}  # fmt: skip


def java_text(root: AvroType, known: Iterable[str] = ()) -> str:
    """Compact JSON. The types whose full names are `known` are only named."""
    return json_text(_Document(set(known)).type(root, ""))


def full_document(root: AvroType) -> Any:
    """JSON whose names are full, for libraries that read other namespaces otherwise."""
    return _Document(set(), is_full=True).type(root, "")


class _Document:
    """Makes the JSON of types; a type is defined where it comes first."""

    def __init__(self, known: set[str], *, is_full: bool = False) -> None:
        self._known = known
        self._is_full = is_full

    def type(self, given: AvroType, namespace: str) -> Any:
        if given.type == "union":
            return [self.type(each, namespace) for each in given.inner]
        if given.type not in NAMED:
            return self._unnamed(given, namespace)
        if given.fullname in self._known:
            return self._relative(given.fullname, namespace)
        self._known.add(given.fullname)
        found: dict[str, Any] = {"type": given.type} | self._name(given, namespace)
        if given.doc is not None:
            found["doc"] = given.doc
        if given.type in RECORDS:
            found["fields"] = [self._field(each, given.namespace) for each in given.fields]
        elif given.type == "enum":
            found["symbols"] = list(given.symbols)
            if given.default is not None:
                found["default"] = given.default
        else:
            found["size"] = given.size
        found |= given.props
        if given.aliases:
            aliases = [self._relative(each, given.namespace) for each in given.aliases]
            found["aliases"] = aliases
        return found

    def _unnamed(self, given: AvroType, namespace: str) -> Any:
        if not given.inner and not given.props:
            return given.type
        found: dict[str, Any] = {"type": given.type}
        if given.inner:
            found[INNER_KEYS[given.type]] = self.type(given.inner[0], namespace)
        return found | given.props

    def _field(self, given: Field, namespace: str) -> dict[str, Any]:
        found: dict[str, Any] = {"name": given.name, "type": self.type(given.type, namespace)}
        if given.doc is not None:
            found["doc"] = given.doc
        if given.has_default:
            found["default"] = given.default
        if given.order != "ascending":
            found["order"] = given.order
        if given.aliases:
            found["aliases"] = list(given.aliases)
        return found | dict(given.props)

    def _name(self, given: AvroType, namespace: str) -> dict[str, str]:
        if self._is_full:
            return {"name": given.fullname} | ({} if given.namespace else {"namespace": ""})
        found = {"name": simple_name(given.fullname)}
        return found if given.namespace == namespace else found | {"namespace": given.namespace}

    def _relative(self, fullname: str, namespace: str) -> str:
        """The name of a type within a namespace."""
        space, _, name = fullname.rpartition(".")
        is_clear = space == namespace and (not space or name not in _TYPES)
        return name if is_clear and not self._is_full else fullname


_TYPES: Final = frozenset((*PRIMITIVES, *NAMED, "array", "map", "union")) - {"error"}


def normalized(root: AvroType) -> AvroType:
    """The type whose text is that of all types which differ only in the order of properties and
    aliases, and in what says nothing: Confluent's `AvroSchemaUtils.toNormalizedString`."""
    return _Normalizer().type(root)


class _Normalizer:
    def __init__(self) -> None:
        self._done: dict[int, AvroType] = {}

    def type(self, given: AvroType) -> AvroType:
        if id(given) in self._done:
            return self._done[id(given)]
        found = replace(given, props=_sorted_props(given), doc=given.doc or None)
        self._done[id(given)] = found
        found.aliases = tuple(sorted(given.aliases))
        found.inner = tuple(self.type(each) for each in given.inner)
        found.fields = tuple(
            each._replace(
                type=self.type(each.type),
                default=_normal_default(each),
                aliases=tuple(sorted(each.aliases)),
                props=_sorted(each.props),
            )
            for each in given.fields
        )
        return found


def _sorted_props(given: AvroType) -> dict[str, Any]:
    first: tuple[str, ...] = ()
    if given.props.get("logicalType") in _LOGICAL.get(given.type, ()):
        first = ("logicalType", "precision", "scale")
    ordered = {key: given.props[key] for key in first if key in given.props}
    return {key: _sorted(value) for key, value in (ordered | _sorted(given.props)).items()}


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value


def _normal_default(given: Field) -> Any:
    """A default; an integer of a floating type has a point in Java."""
    kind, value = given.type, given.default
    if value is ABSENT:
        return ABSENT
    if kind.type == "union" and kind.inner:
        kind = kind.inner[0]
    is_floating = kind.type in ("float", "double")
    return float(value) if is_floating and is_integer(value) else _sorted(value)


def json_text(value: Any) -> str:
    """JSON as Jackson writes it."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(key)}:{json_text(value[key])}' for key in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    return _double(value) if isinstance(value, float) else json.dumps(value)


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)
    return _ESCAPE.sub(lambda found: found[0][:2] + found[0][2:].upper(), escaped)


def _double(value: float) -> str:
    """The text of Java's Double.toString: the shortest digits, as Python's, in another form."""
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        return repr(value)
    shortest = Decimal(repr(value)).normalize()
    first, *rest = map(str, shortest.as_tuple().digits)
    return f"{'-' if value < 0 else ''}{first}.{''.join(rest) or '0'}E{shortest.adjusted()}"
