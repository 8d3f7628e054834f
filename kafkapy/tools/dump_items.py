"""What `dump-log-segments` says of segments line by line, besides batches and records.

Each item is a line of Kafka's text and a JSON object: its `kind` and its fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Item(Protocol):
    """One line of output, in two forms: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]

    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """A file begins."""

    path: str
    kind: ClassVar[str] = "file"

    def text(self) -> str:
        return f"Dumping {self.path}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the options, which Kafka says in the middle of its results."""

    message: str
    kind: ClassVar[str] = "note"

    def text(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """The base offset in the name of a `.log`."""

    base_offset: int
    kind: ClassVar[str] = "segment"

    def text(self) -> str:
        return f"Log starting offset: {self.base_offset}"


@dataclass(frozen=True, slots=True)
class SnapshotStart:
    """A KRaft snapshot's end, from the name of a `.checkpoint`."""

    end_offset: int
    epoch: int
    kind: ClassVar[str] = "kraft_snapshot"

    def text(self) -> str:
        return f"Snapshot end offset: {self.end_offset}, epoch: {self.epoch}"


@dataclass(frozen=True, slots=True)
class BootstrapSnapshot:
    """The snapshot that a KRaft controller starts from."""

    kind: ClassVar[str] = "kraft_bootstrap"

    def text(self) -> str:
        return "KRaft bootstrap snapshot"


@dataclass(frozen=True, slots=True)
class InvalidTail:
    """What follows the last whole batch; `last_good_byte` is where that ends."""

    bytes: int
    file_name: str
    last_good_byte: int
    kind: ClassVar[str] = "invalid_tail"

    def text(self) -> str:
        return f"Found {self.bytes} invalid bytes at the end of {self.file_name}"


def optional_long(value: int | None) -> str:
    """`OptionalLong.toString`."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
