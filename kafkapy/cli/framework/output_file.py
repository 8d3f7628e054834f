"""Stdout with a memory of its first failure."""

from __future__ import annotations

import io
from select import select
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFile(io.FileIO):
    """A file that remembers whether it failed a write: an OSError does not say whose it is."""

    has_failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            while (written := super().write(data)) is None:  # another process made it non-blocking
                select([], [self], [])
        except OSError:
            self.has_failed = True
            raise
        return written


def with_memory(stream: TextIO) -> TextIO:
    """The same stream over an `OutputFile`, if it is a file. It has a buffer even under
    PYTHONUNBUFFERED, without which a write may bring out a part and not say so."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    file = OutputFile(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering or stream.write_through,
    )


def has_failed(stream: TextIO) -> bool:
    """Whether a write to a stream of `with_memory` failed."""
    buffer = getattr(stream, "buffer", None)
    return isinstance(buffer, io.BufferedWriter) and getattr(buffer.raw, "has_failed", False)
