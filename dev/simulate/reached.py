"""Counts of the places that production code reached. `reach` inserts the calls into a copy."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kafkapy.common.errors import ErrorCode

COUNTS: Final[Counter[tuple[str, str]]] = Counter()
"""Counts by kind and name."""


def note(kind: str, name: str) -> None:
    """Count a place that was reached."""
    COUNTS[kind, name] += 1


def note_if(condition: object, kind: str, name: str) -> None:
    """Count a place that was reached, if `condition`."""
    if condition:
        note(kind, name)


def note_errors(response: Any) -> None:
    """Count the error codes of a response to a client or a broker."""
    if isinstance(response, list):
        for row in response:
            note_errors(row)
        return
    for name in getattr(type(response), "__slots__", ()):
        value = getattr(response, name)
        if name.endswith("error_code"):
            note("error code", ErrorCode(value).name)
        elif not isinstance(value, int | str | bytes | memoryview):
            note_errors(value)
