"""Declaration of messages: a class with one line per field, in the order of the wire.

    class ListOffsetsRequest(Message, api=ApiKey.LIST_OFFSETS):
        replica_id: int = field(INT32)
        isolation_level: int = field(INT8, "2+")
        topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)

Version ranges read as in Kafka's message definitions: "3+", "2-7", "0". A field outside its range
is absent from the wire and keeps its default. Defaults are Kafka's (0, "", false, empty) except
that a field which may be null in all its versions starts as None.

The metaclass turns such a class into slots, a keyword constructor, `==` and `repr`; `compile` turns
it into a decoder and an encoder per version.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, dataclass_transform, overload

from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.primitives import Records

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

_LATEST: Final = 32767
_UNSET: Final[Any] = object()


class Kind(Generic[T]):
    """A primitive type: its `struct` code if it has a fixed size, and its implicit default."""

    __slots__ = ("code", "default", "name")

    def __init__(self, name: str, code: str, default: T) -> None:
        self.name = name
        self.code = code
        self.default = default

    def __repr__(self) -> str:
        return self.name


INT8: Final = Kind("int8", "b", 0)
INT16: Final = Kind("int16", "h", 0)
INT32: Final = Kind("int32", "i", 0)
INT64: Final = Kind("int64", "q", 0)
BOOL: Final = Kind("bool", "?", False)
FLOAT64: Final = Kind("float64", "d", 0.0)
UUID: Final[Kind[Uuid]] = Kind("uuid", "16s", ZERO_UUID)
STRING: Final = Kind("string", "", "")
BYTES: Final = Kind("bytes", "", b"")
RECORDS: Final[Kind[Records]] = Kind("records", "", b"")


class Versions:
    """An inclusive range of versions."""

    __slots__ = ("first", "last")

    def __init__(self, text: str) -> None:
        first, dash, last = text.partition("-")
        self.first = int(first.removesuffix("+"))
        self.last = int(last) if dash else _LATEST if text.endswith("+") else self.first

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


class Field:
    """One declared field. `item` is its Kind or its struct; `is_array` is True for an array."""

    __slots__ = ("default", "is_array", "item", "name", "nullable", "tag", "versions")

    def __init__(
        self,
        item: Kind[Any] | type[Struct],
        is_array: bool,
        versions: str,
        nullable: str | bool,
        default: Any,
        tag: int | None,
    ) -> None:
        self.name = ""
        self.item = item
        self.is_array = is_array
        self.versions = Versions(versions)
        self.nullable = Versions(versions if nullable is True else nullable) if nullable else None
        self.tag = tag
        if default is not _UNSET:
            self.default = default
        elif nullable is True:
            self.default = None
        elif is_array:
            self.default = []
        else:
            self.default = item.default

    def is_nullable(self, version: int) -> bool:
        """Whether null is allowed on the wire in `version`."""
        return self.nullable is not None and version in self.nullable


@overload
def field(kind: Kind[T], versions: str = ..., *, default: T = ..., tag: int | None = ...) -> T: ...


@overload
def field(
    kind: Kind[T],
    versions: str = ...,
    *,
    nullable: Literal[True] | str,
    default: T | None = ...,
    tag: int | None = ...,
) -> T | None: ...


def field(
    kind: Kind[Any],
    versions: str = "0+",
    *,
    nullable: bool | str = False,
    default: Any = _UNSET,
    tag: int | None = None,
) -> Any:
    """A primitive field. `nullable=True` means in all its versions."""
    return Field(kind, False, versions, nullable, default, tag)


@overload
def array(item: Kind[T], versions: str = ..., *, tag: int | None = ...) -> list[T]: ...


@overload
def array(item: type[S], versions: str = ..., *, tag: int | None = ...) -> list[S]: ...


@overload
def array(
    item: Kind[T], versions: str = ..., *, nullable: Literal[True] | str, tag: int | None = ...
) -> list[T] | None: ...


@overload
def array(
    item: type[S], versions: str = ..., *, nullable: Literal[True] | str, tag: int | None = ...
) -> list[S] | None: ...


def array(
    item: Any, versions: str = "0+", *, nullable: bool | str = False, tag: int | None = None
) -> Any:
    """A field that holds a list of primitives or of structs."""
    return Field(item, True, versions, nullable, _UNSET, tag)


@overload
def struct(item: type[S], versions: str = ..., *, tag: int | None = ...) -> S: ...


@overload
def struct(
    item: type[S], versions: str = ..., *, nullable: Literal[True], tag: int | None = ...
) -> S | None: ...


def struct(
    item: Any, versions: str = "0+", *, nullable: bool = False, tag: int | None = None
) -> Any:
    """A field that holds one struct."""
    return Field(item, False, versions, nullable, _UNSET, tag)


def _constructor(fields: tuple[Field, ...]) -> Any:
    """Generate `__init__`: a written-out function is three times as fast as one over `**values`."""
    values: dict[str, Any] = {"UNSET": _UNSET}
    head, body = ["self", *("*" for _ in fields[:1])], ["pass"]
    for each in fields:
        name = each.name
        if isinstance(each.default, list):
            head.append(f"{name}=UNSET")
            body.append(f"self.{name} = [] if {name} is UNSET else {name}")
        else:
            values[f"default_{name}"] = each.default
            head.append(f"{name}=default_{name}")
            body.append(f"self.{name} = {name}")
    exec(f"def __init__({', '.join(head)}):\n " + "\n ".join(body), values)
    return values["__init__"]


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Collects the fields of a declared class and gives it its methods."""

    FIELDS: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], api: ApiKey | None = None
    ) -> StructMeta:
        """Make the class; `api` (on the top level of a message) sets its key and versions."""
        fields = tuple(value for value in body.values() if isinstance(value, Field))
        for key in [key for key, value in body.items() if isinstance(value, Field)]:
            body.pop(key).name = key
        body["__slots__"] = tuple(each.name for each in fields)
        if fields or api is not None:
            body["FIELDS"] = fields
            body["__init__"] = _constructor(fields)
        if api is not None:
            versions = API_VERSIONS[api]
            body["API_KEY"] = api
            body["MIN_VERSION"] = versions.first
            body["MAX_VERSION"] = versions.last
            body["FIRST_FLEXIBLE_VERSION"] = versions.first_flexible
        body["decoders"], body["encoders"] = {}, {}
        body["sliced_decoders"], body["sliced_encoders"] = {}, {}
        return super().__new__(mcs, name, bases, body)

    @property
    def default(cls) -> Any:
        """The value of an unset struct field: shared by all messages, so it refuses changes."""
        known = cls.__dict__.get("_default")
        if known is None:
            frozen = type.__new__(StructMeta, cls.__name__, (cls,), _FROZEN_BODY)
            known = cls()
            known.__class__ = frozen
            cls._default = known
        return known


def _refuse_change(self: Struct, name: str, value: object) -> None:
    raise AttributeError(f"the default {type(self).__name__} is shared: assign a new one instead")


_FROZEN_BODY: Final = {"__slots__": (), "__setattr__": _refuse_change}


class Struct(metaclass=StructMeta):
    """Base of every declared class. Values compare field by field and are not hashable."""

    FIELDS: ClassVar[tuple[Field, ...]]
    decoders: ClassVar[dict[int, Any]]
    encoders: ClassVar[dict[int, Any]]
    sliced_decoders: ClassVar[dict[int, Any]]
    sliced_encoders: ClassVar[dict[int, Any]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.FIELDS is not other.FIELDS:
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in self.FIELDS)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """Base of requests and responses, with the values of `API_VERSIONS` for their API."""

    API_KEY: ClassVar[ApiKey]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FIRST_FLEXIBLE_VERSION: ClassVar[int | None]


def has_more_elements(message: Struct, limit: int, *, numbers: bool = False) -> bool:
    """Whether the arrays of a message, or with `numbers` those of numbers too, hold more than
    `limit` elements."""
    return _count_elements(message, limit, numbers) > limit


def _count_elements(value: Struct, limit: int, numbers: bool) -> int:
    """The number of elements; if there are more than `limit`, some number above it."""
    count = 0
    for name, has_arrays in _arrays_of(type(value), numbers):
        elements = getattr(value, name)
        if not elements:
            continue
        count += len(elements)
        if has_arrays and count <= limit:
            for element in elements:
                count += _count_elements(element, limit, numbers)
                if count > limit:
                    break
    return count


@cache
def _arrays_of(cls: type[Struct], numbers: bool) -> tuple[tuple[str, bool], ...]:
    """The array fields of a struct that count; and whether their elements have any."""
    found = []
    for each in cls.FIELDS:
        if each.is_array and isinstance(each.item, Kind):
            if numbers or not each.item.code:
                found.append((each.name, False))
        elif each.is_array:
            found.append((each.name, bool(_arrays_of(each.item, numbers))))
    return tuple(found)
