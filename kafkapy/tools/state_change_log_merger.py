"""Merges state-change logs of many brokers in the order of time (Kafka's `StateChangeLogMerger`).

A k-way merge of sorted files, with one line of each in memory. Rotated files may be compressed
(gzip, bzip2, xz); their first bytes identify the format.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader, FileIO
from typing import Any, BinaryIO, Final, cast

from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS
from kafkapy.tools.compressed_files import compression_of
from kafkapy.tools.state_change_lines import LineFilter

_BUFFER_BYTES: Final = 1 << 20
_OPENERS: Final[dict[str, Callable[..., Any]]] = {
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "xz": lzma.open,
}
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


# The date of a line, the line without its end, and its file. A plain tuple, for speed.
MergedLine = tuple[bytes, bytes, str]


def files_matching(pattern: str) -> list[str]:
    """The files of `[dir/]regex`: those of the directory whose names match, sorted by name.

    Raises:
        ConfigError: the regular expression is invalid, or the directory cannot be read.
    """
    directory, slash, expression = pattern.rpartition("/")
    directory = directory if slash else "."
    try:
        names = re.compile(expression)
    except PATTERN_ERRORS as error:
        raise ConfigError(f"{expression} is an invalid regex: {error}") from None
    try:
        with os.scandir(directory or "/") as found:
            chosen = [entry.name for entry in found if names.search(entry.name) and entry.is_file()]
    except OSError as error:
        raise ConfigError(f"{directory or '/'}: {error.strerror}") from None
    return [f"{directory}/{name}" for name in sorted(chosen)]


def merge(paths: Sequence[str], line_filter: LineFilter) -> Iterator[MergedLine]:
    """The selected lines of all files, the earliest first.

    Raises:
        ConfigError: a file cannot be read. All files are opened before the first line is returned.
    """
    with ExitStack() as files:
        opened = [(path, _open(path, files)) for path in paths]
        readers = [_selected_lines(path, file, line_filter) for path, file in opened]
        if len(readers) == 1:
            yield from readers[0]
        else:
            yield from _merge(readers)


def _merge(readers: Sequence[Iterator[MergedLine]]) -> Iterator[MergedLine]:
    queue = LineQueue()
    firsts = ((next(reader, None), reader) for reader in readers)
    # Reversed, because Kafka prepends to its list of first lines.
    queue.fill([(line, reader) for line, reader in firsts if line is not None][::-1])
    while queue:
        line, reader = queue.pop()
        yield line
        next_line = next(reader, None)
        if next_line is not None:
            queue.push((next_line, reader))


_Item = tuple[MergedLine, Iterator[MergedLine]]


class LineQueue:
    """A queue with the earliest line first, and equal dates in the order of Scala's
    `mutable.PriorityQueue`.

    Kafka's output depends on that order whenever two files have a line of the same millisecond,
    which is usual. So this is the same heap, step by step, with the earliest date as the greatest.
    """

    def __init__(self) -> None:
        self._heap: list[_Item] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def fill(self, items: list[_Item]) -> None:
        """Fill the queue with the first lines."""
        self._heap = items
        for at in range(len(items) // 2, 0, -1):
            self._sink(at)

    def push(self, item: _Item) -> None:
        """Add a line."""
        heap = self._heap
        heap.append(item)
        size = len(heap)
        if size == 2:
            self._sink(1)
            return
        at = size
        while at > 1 and heap[at // 2 - 1][0][0] > heap[at - 1][0][0]:
            heap[at // 2 - 1], heap[at - 1] = heap[at - 1], heap[at // 2 - 1]
            at //= 2

    def pop(self) -> _Item:
        """Remove and return the first line."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            heap[0] = last
            self._sink(1)
        return first

    def _sink(self, at: int) -> None:
        heap = self._heap
        size = len(heap)
        while size >= 2 * at:
            child = 2 * at
            if child < size and heap[child - 1][0][0] > heap[child][0][0]:
                child += 1
            if heap[at - 1][0][0] <= heap[child - 1][0][0]:
                return
            heap[at - 1], heap[child - 1] = heap[child - 1], heap[at - 1]
            at = child


def _open(path: str, files: ExitStack) -> BinaryIO:
    try:
        # Opened once only: a pipe, such as bash's <(...), would lose what was read before.
        file = files.enter_context(BufferedReader(FileIO(path), _BUFFER_BYTES))
        head = file.peek()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    compression = compression_of(head)
    if compression is None:
        return file
    if compression not in _OPENERS:
        raise ConfigError(
            f"{path} is compressed with {compression}, which is not supported: give"
            f" <({compression} -dc {path})"
        )
    return cast(BinaryIO, files.enter_context(_OPENERS[compression](file)))


def _selected_lines(path: str, file: BinaryIO, line_filter: LineFilter) -> Iterator[MergedLine]:
    date_of = line_filter.date_of
    try:
        for raw in file:
            if b"\r" in raw:  # in Java, a lone carriage return ends a line too
                yield from (
                    (date, line, path)
                    for line in _LINE_END.split(raw)
                    if (date := date_of(line)) is not None
                )
                continue
            date = date_of(raw)
            if date is not None:
                yield date, raw.removesuffix(b"\n"), path
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
