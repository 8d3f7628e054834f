"""Reads JSON files written by hand, with precise errors.

As in Kafka's reader, text after the first value is ignored, strings and fractions are not whole
numbers, and the last of an object's duplicate keys is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import KafkapyError

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""An unpaired surrogate, which cannot be encoded in UTF-8."""

_KINDS = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}


class JsonInputError(KafkapyError):
    """The text is not JSON, or not of the required form."""


class JsonNode(NamedTuple):
    """A value with its path, such as `partitions[2].replicas`."""

    value: Any
    place: str = ""

    def field(self, name: str) -> JsonNode:
        """A member of an object.

        Raises:
            JsonInputError: the member does not exist, or this is not an object.
        """
        found = self.optional(name)
        if found is None:
            raise JsonInputError(f"No such field exists: `{name}`{self._place_text()}")
        return found

    def optional(self, name: str) -> JsonNode | None:
        """A member of an object, if it exists."""
        if not isinstance(self.value, dict):
            raise self._unexpected("JSON object")
        if name not in self.value:
            return None
        return JsonNode(self.value[name], f"{self.place}.{name}".lstrip("."))

    def items(self) -> Iterator[JsonNode]:
        """The values of an array."""
        if not isinstance(self.value, list):
            raise self._unexpected("JSON array")
        for index, value in enumerate(self.value):
            yield JsonNode(value, f"{self.place}[{index}]")

    def integer(self, bits: int = 32) -> int:
        """A whole number of 32 or 64 bits."""
        limit = 1 << (bits - 1)
        if type(self.value) is not int or not -limit <= self.value < limit:
            raise self._unexpected("`Integer` value" if bits == 32 else "`Long` value")
        return self.value

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str) or _SURROGATE.search(self.value):
            raise self._unexpected("`String` value")
        return self.value

    def _unexpected(self, wanted: str) -> JsonInputError:
        kind = _KINDS.get(type(self.value), "null")
        shown = json.dumps(self.value)
        if len(shown) > 40:
            shown = shown[:37] + "..."
        return JsonInputError(f"Expected {wanted}, received {kind} {shown}{self._place_text()}")

    def _place_text(self) -> str:
        return f" at {self.place}" if self.place else ""


def parse_json(text: str, error_text: str) -> JsonNode:
    """The first JSON value of a text.

    Raises:
        JsonInputError: `error_text`, and the position of the error.
    """
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip("\ufeff \t\r\n"))
    except json.JSONDecodeError as error:
        skipped = len(text) - len(text.lstrip("\ufeff \t\r\n"))
        before = text[: skipped + error.pos]
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        raise JsonInputError(f"{error_text} (line {line}, column {column}: {error.msg})") from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of nested brackets.
        raise JsonInputError(f"{error_text} ({error})") from None
    return JsonNode(value)


def read_text(path: str) -> str:
    """The text of a file that was named on the command line.

    Raises:
        JsonInputError: the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise JsonInputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise JsonInputError(f"{path} is not UTF-8 (byte {error.start})") from error
