"""A parsed schema, of whatever type."""

from __future__ import annotations

from typing import Protocol


class InvalidSchema(ValueError):
    """A schema's text cannot be parsed; the message says where and why."""


class ParsedSchema(Protocol):
    """A schema of one type. `text` is the stored form; schemas with equal `identity` are equal."""

    @property
    def text(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def incompatibilities(self, writer: ParsedSchema) -> list[str]:
        """The reasons why this schema, as the reader, cannot read data of `writer`; none if it can.
        Both are of the same type.
        """
