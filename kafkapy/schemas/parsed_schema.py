"""A parsed schema of any type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final, Protocol

# Of two types, beyond one of each type, in all versions that a request is compared with. One takes
# some 20 us, and other requests wait.
COMPARISONS_MAX: Final = 250_000
_LENGTH_OF_A_TYPE: Final = 10
RESOLVED: Final = "resolved"  # the format with the types of references
# Large schemas differ in thousands of places.
REASONS_MAX: Final = 50
REASON_LENGTH_MAX: Final = 500
TOO_DEEP: Final = "its types are nested too deeply"
TOO_MANY_COMPARISONS: Final = "the schemas have too many combinations of types to be compared"


class TooManyComparisons(Exception):
    """A request has spent its budget."""


class Budget:
    """The comparisons of two types that a request may still take."""

    def __init__(self) -> None:
        self._left: float = COMPARISONS_MAX

    def extend(self, length: int) -> None:
        """Add the comparisons for two schemas of this total length, if each type is compared once.
        A subject may have any number of versions."""
        self._left += length / _LENGTH_OF_A_TYPE

    def spend(self, comparisons: float) -> None:
        """
        Raises:
            TooManyComparisons: there are none left.
        """
        self._left -= comparisons
        if self.is_spent:
            raise TooManyComparisons

    @property
    def is_spent(self) -> bool:
        return self._left < 0


class InvalidSchema(ValueError):
    """A schema's text cannot be parsed; the message says where and why."""


def json_of(text: str, parse_int: Callable[[str], int] = int) -> Any:
    """The JSON of a schema.

    Raises:
        InvalidSchema: the text is not JSON, or cannot be stored: it has a number that is infinite,
            NaN or too large for a double, or half of a surrogate pair; or `parse_int` raised
            ValueError.
    """
    try:
        document = json.loads(text, parse_constant=finite, parse_float=finite, parse_int=parse_int)
        json.dumps(document, ensure_ascii=False).encode()
    except ValueError as error:
        raise InvalidSchema(f"The schema is not valid JSON: {error}") from error
    return document


def finite(digits: str) -> float:
    """A number.

    Raises:
        ValueError: it is infinite or NaN, which JSON does not have.
    """
    if digits.lstrip("-")[:1].isdigit() and math.isfinite(value := float(digits)):
        return value
    raise ValueError(f"the number {digits[:50]} is not supported")


class ParsedSchema(Protocol):
    """A schema of one type. `text` is the stored form; schemas with equal `identity` are equal."""

    @property
    def text(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def normalized(self) -> str:
        """The text of all schemas that differ from this one only in the order of what has none.

        Raises:
            InvalidSchema: a default is not of its type.
        """

    def formatted(self, name: str) -> str:
        """The text in one of Confluent's formats. It is `text` if the type has no such format."""

    def incompatibilities(self, writer: ParsedSchema, budget: Budget | None = None) -> list[str]:
        """The reasons why this schema, as the reader, cannot read data of `writer`; none if it can.
        Both are of the same type. `budget` is that of several comparisons.
        """
