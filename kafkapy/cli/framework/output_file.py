"""A stdout that records whether a write failed."""

from __future__ import annotations

import io
from select import select
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFile(io.FileIO):
    """A file that records whether a write failed: an OSError does not name its file."""

    has_failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            while (written := super().write(data)) is None:  # another process made it non-blocking
                select([], [self], [])
        except OSError:
            self.has_failed = True
            raise
        return written


def wrap_output_file(stream: TextIO) -> TextIO:
    """The same stream over an `OutputFile`, if it is a file. It is buffered even with
    PYTHONUNBUFFERED, because an unbuffered write may be partial without an error."""
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
    """Whether a write to a stream that `wrap_output_file` returned has failed."""
    buffer = getattr(stream, "buffer", None)
    return isinstance(buffer, io.BufferedWriter) and getattr(buffer.raw, "has_failed", False)
