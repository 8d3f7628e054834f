"""A parsed schema of any type."""

from __future__ import annotations

from typing import Final, Protocol

# A comparison of two types takes some 20 us, and other requests wait.
COMPARISONS_MAX: Final = 250_000
RESOLVED: Final = "resolved"  # the format with the types of references
TOO_DEEP: Final = "its types are nested too deeply"
TOO_MANY_COMPARISONS: Final = "the schemas have too many combinations of types to be compared"


class TooManyComparisons(Exception):
    """A comparison has reached `COMPARISONS_MAX`."""


class InvalidSchema(ValueError):
    """A schema's text cannot be parsed; the message says where and why."""


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

    def incompatibilities(self, writer: ParsedSchema) -> list[str]:
        """The reasons why this schema, as the reader, cannot read data of `writer`; none if it can.
        Both are of the same type.
        """
