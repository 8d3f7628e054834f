"""Builds the source text of one generated function: lines, unique names, and named values."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from typing import Any


class Source:
    """Python source being written, and the global names that it uses.

    Generated names never clash: each is a letter and a number that only grows.
    """

    __slots__ = ("depth", "lines", "serial", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.values = values
        self.depth = 0
        self.serial = 0

    def line(self, text: str) -> None:
        """Add one line at the present depth."""
        self.lines.append(" " * self.depth + text)

    def open(self, text: str) -> None:
        """Add a line that begins a block."""
        self.line(text)
        self.depth += 1

    def close(self) -> None:
        """End the block."""
        self.depth -= 1

    def name(self, letter: str) -> str:
        """A new variable name."""
        self.serial += 1
        return f"{letter}{self.serial}"

    def value(self, letter: str, value: object) -> str:
        """A global name for `value`."""
        name = self.name(letter)
        self.values[name] = value
        return name

    def layout(self, codes: str) -> Layout:
        """The big-endian layout of `codes`."""
        return Layout(">" + codes)

    def function(self, name: str, filename: str) -> Callable[..., Any]:
        """Compile the source and return its function `name`."""
        exec(compile("\n".join(self.lines), filename, "exec"), self.values)
        function: Callable[..., Any] = self.values[name]
        return function
