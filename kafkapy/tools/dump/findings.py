"""Faults that `dump-log-segments` found, printed at the end with Kafka's order and texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

# finding -> first line (with the file), line for each pair, the pair's names in JSON.
_TEXTS: Final = {
    "index_mismatch": (
        "Mismatches in :{}",
        "  Index offset: {}, log offset: {}",
        ("index_offset", "log_offset"),
    ),
    "timestamp_mismatch": (
        "Found timestamp mismatch in :{}",
        "  Index timestamp: {}, log timestamp: {}",
        ("index_timestamp", "log_timestamp"),
    ),
    "timestamp_out_of_order": (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
        ("index_timestamp", "previous_timestamp"),
    ),
    "offset_not_found": (
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {}, found log offset: {}",
        ("index_offset", "log_offset"),
    ),
    "non_consecutive_offsets": (
        "Non-consecutive offsets in {}",
        "  {} is followed by {}",
        ("offset", "next_offset"),
    ),
}
# Kafka prepends each of these to its list, so they are printed last first.
_REVERSED: Final = {"index_mismatch", "non_consecutive_offsets"}
_SIGN: Final = 1 << 63
INDEX_MISMATCH, TIMESTAMP_MISMATCH, OUT_OF_ORDER, NOT_FOUND, NON_CONSECUTIVE = _TEXTS


def _wrapped(number: int) -> int:
    """A number wrapped to 64 bits, as in Java: damaged offsets can be higher."""
    return (number + _SIGN) % (2 * _SIGN) - _SIGN


class Findings:
    """Pairs of numbers by finding and file (its absolute path), 16 bytes each."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[str, array[int]]] = {finding: {} for finding in _TEXTS}

    def add(self, finding: str, path: str, pair: tuple[int, int]) -> None:
        """Add a fault."""
        self._pairs[finding].setdefault(path, array("q")).extend(map(_wrapped, pair))

    def __bool__(self) -> bool:
        return any(self._pairs.values())

    def lines(self) -> Iterator[str]:
        """Kafka's text."""
        for finding, files in self._pairs.items():
            heading, line, _ = _TEXTS[finding]
            for path, numbers in files.items():
                yield heading.format(path)
                places = range(0, len(numbers), 2)
                for at in reversed(places) if finding in _REVERSED else places:
                    yield line.format(numbers[at], numbers[at + 1])

    def objects(self) -> Iterator[dict[str, Any]]:
        """The findings as JSON objects, in the order of the log."""
        for finding, files in self._pairs.items():
            first, second = _TEXTS[finding][2]
            for path, numbers in files.items():
                for at in range(0, len(numbers), 2):
                    yield {
                        "kind": "finding",
                        "finding": finding,
                        "path": path,
                        first: numbers[at],
                        second: numbers[at + 1],
                    }
