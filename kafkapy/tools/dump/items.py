"""Lines of `dump-log-segments` about segments, other than batches and records.

Each item is a line of Kafka's text and a JSON object: its `kind` and its fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Item(Protocol):
    """One line of output, as text or as a JSON object. Items are named tuples."""

    @property
    def kind(self) -> str: ...

    def text(self) -> str: ...

    def _asdict(self) -> dict[str, Any]: ...


class DumpedFile(NamedTuple):
    """The start of a file."""

    path: str

    @property
    def kind(self) -> str:
        return "file"

    def text(self) -> str:
        return f"Dumping {self.path}"


class Note(NamedTuple):
    """A note about the options, which Kafka prints among its results."""

    message: str

    @property
    def kind(self) -> str:
        return "note"

    def text(self) -> str:
        return self.message


class SegmentStart(NamedTuple):
    """The base offset in the name of a `.log`."""

    base_offset: int

    @property
    def kind(self) -> str:
        return "segment"

    def text(self) -> str:
        return f"Log starting offset: {self.base_offset}"


class SnapshotStart(NamedTuple):
    """A KRaft snapshot's end, from the name of a `.checkpoint`."""

    end_offset: int
    epoch: int

    @property
    def kind(self) -> str:
        return "kraft_snapshot"

    def text(self) -> str:
        return f"Snapshot end offset: {self.end_offset}, epoch: {self.epoch}"


class BootstrapSnapshot(NamedTuple):
    """The snapshot that a KRaft controller starts from."""

    @property
    def kind(self) -> str:
        return "kraft_bootstrap"

    def text(self) -> str:
        return "KRaft bootstrap snapshot"


class InvalidTail(NamedTuple):
    """The bytes after the last whole batch. `last_good_byte` is the last byte of that batch."""

    bytes: int
    file_name: str
    last_good_byte: int

    @property
    def kind(self) -> str:
        return "invalid_tail"

    def text(self) -> str:
        return f"Found {self.bytes} invalid bytes at the end of {self.file_name}"


def optional_long(value: int | None) -> str:
    """`OptionalLong.toString`."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
