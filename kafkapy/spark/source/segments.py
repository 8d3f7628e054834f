"""Finds and reads log segments as files, without a broker.

As in `kafka-dump-log`, all records on disk are read, also those beyond the high watermark or before
the log start offset. An incomplete batch at the end of a log is left out, as in recovery.
"""

from __future__ import annotations

import logging
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers, read_header, whole_batch_size
from kafkapy.spark.source.pushdown import Bounds

if TYPE_CHECKING:
    from kafkapy.record.columns import Columns

log: Final = logging.getLogger("kafkapy.spark")

_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_ABORTED: Final = Struct(">hqqqq")  # .txnindex: version, producer, first, last, last stable offset
_INDEXED: Final = Struct(">ii")  # .index: last offset of a set less the base offset, position
_OFFSET_MAX: Final = 2**63 - 1


class Segment(NamedTuple):
    """One `.log` file. `end_offset` is the next one's base offset, or the largest possible offset.

    `aborted` has the (producer id, first offset) of transactions whose records are left out.
    """

    topic_partition: TopicPartition
    path: str
    base_offset: int
    end_offset: int
    aborted: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Replica:
    """A partition's directory and the base offsets of its segments, in order."""

    topic_partition: TopicPartition
    directory: Path
    base_offsets: tuple[int, ...]

    def log_end_offset(self, *, skip_corrupt: bool = False) -> int:
        """The offset after the last whole batch on disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE for a deleted file, naming the file;
              with `skip_corrupt` a warning, and the offset is that of the corrupt batch or file.
        """
        base = self.base_offsets[-1]
        end = base
        try:
            view = _map_file(self._path(base))
            for _, header in _with_path_in_errors(iter_headers(view), self._path(base)):
                end = header.next_offset
        except ApiError as error:
            if not skip_corrupt:
                raise
            log.warning("%s; the replica ends there", error.message)
        return end

    def segments(self, bounds: Bounds, *, skip_aborted: bool = False) -> list[Segment]:
        """The segments that may have offsets within the bounds."""
        ends = (*self.base_offsets[1:], _OFFSET_MAX)
        aborted = self._aborted() if skip_aborted else []
        # A transaction that ends before the bounds is left out: the reader may not read its marker,
        # and would then take the producer's later records for aborted ones.
        aborted = [each for each in aborted if each[2] >= bounds.offset.low]
        return [
            Segment(
                self.topic_partition,
                str(self._path(base)),
                base,
                end,
                tuple((pid, first) for pid, first, last in aborted if first < end and last >= base),
            )
            for base, end in zip(self.base_offsets, ends, strict=True)
            if base <= bounds.offset.high and bounds.offset.low < end
        ]

    def _aborted(self) -> list[tuple[int, int, int]]:
        """(producer id, first offset, last offset) of every aborted transaction."""
        found = []
        for base in self.base_offsets:
            index = self._path(base).with_suffix(".txnindex")
            data = index.read_bytes() if index.exists() else b""
            whole = len(data) // _ABORTED.size * _ABORTED.size
            found += [entry[1:4] for entry in _ABORTED.iter_unpack(data[:whole])]
        return found

    def _path(self, base_offset: int) -> Path:
        return self.directory / f"{base_offset:020d}.log"


def find_replicas(paths: Sequence[str]) -> list[Replica]:
    """The partitions' directories in log directories; a path may be a partition's directory itself.

    Directories of deleted, future or stray replicas are left out, as Kafka's names mark them.

    Raises:
        ConfigError: a path is not a directory, or nothing was found.
    """
    found = []
    for path in map(Path, paths):
        if not path.is_dir():
            raise ConfigError(f"{path} is not a directory")
        directories = [path] if _base_offsets(path) else sorted(filter(Path.is_dir, path.iterdir()))
        for directory in directories:
            name = _PARTITION.fullmatch(directory.name)
            # Others are not opened: only root may read lost+found.
            if name is not None and (offsets := _base_offsets(directory)):
                tp = TopicPartition(name[1], int(name[2]))
                found.append(Replica(tp, directory, offsets))
    if not found:
        raise ConfigError(f"No partition of any topic is in {', '.join(paths)}")
    return found


def longest_replicas(replicas: Iterable[Replica], *, skip_corrupt: bool = False) -> list[Replica]:
    """One replica of each partition: the one with the highest log end offset, then the longest
    one. Raises as `Replica.log_end_offset`.
    """

    def reach(replica: Replica) -> tuple[int, int]:
        return replica.log_end_offset(skip_corrupt=skip_corrupt), -replica.base_offsets[0]

    by_partition: dict[TopicPartition, list[Replica]] = {}
    for replica in replicas:
        by_partition.setdefault(replica.topic_partition, []).append(replica)
    return [
        max(candidates, key=reach) if len(candidates) > 1 else candidates[0]
        for _, candidates in sorted(by_partition.items())
    ]


def read_segment(
    segment: Segment, bounds: Bounds, *, columns: Sequence[str], skip_corrupt: bool
) -> Iterator[Any]:
    """Yield the records of a segment within the bounds as `pyarrow.RecordBatch`es of some columns.

    Raises:
        ApiError: CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE for a deleted file, naming the file; with
          `skip_corrupt` a warning, after which the segment ends.
    """
    from kafkapy.record.columns import decode_columns  # not on the driver: see `engine`
    from kafkapy.spark.source.arrow import fields_to_decode, record_batches

    low, high = bounds.offset
    start, end = max(low, segment.base_offset), min(high + 1, segment.end_offset)
    path = Path(segment.path)
    decode: Callable[..., Iterator[Columns]] = partial(
        decode_columns, selection=fields_to_decode(columns), aborted=segment.aborted
    )
    if skip_corrupt:
        decode = partial(decode_before_corrupt, decode)
    try:
        view = _map_file(path)
        view = view[_position_of(view, path, start) :]
        decoded = decode(view, start, end)
        for decoded_columns in _with_path_in_errors(decoded, path):
            yield from record_batches(
                decoded_columns, segment.topic_partition, columns, bounds.timestamp_us
            )
            start = int(decoded_columns.offsets[-1]) + 1
        if segment.end_offset != _OFFSET_MAX:
            _check_closed(view, path)
    except ApiError as error:
        if not skip_corrupt:
            raise
        log.warning(
            "%s; the rest of the segment is left out, from offset %d on", error.message, start
        )


def decode_before_corrupt(
    decode: Callable[..., Iterator[Columns]], view: memoryview, start: int, end: int
) -> Iterator[Columns]:
    """Decode all batches before a corrupt one. `decode` reads batches in groups, and yields nothing
    of a group with a corrupt batch. This group is decoded again, batch by batch.

    Raises:
        ApiError: CORRUPT_MESSAGE, after these batches.
    """
    try:
        for columns in decode(view, start, end):
            yield columns
            start = int(columns.offsets[-1]) + 1
    except ApiError:
        yield from decode(view[: _end_of_headers(view)], start, end, group_bytes=1)
        raise


def _end_of_headers(view: memoryview) -> int:
    """The position of the first header that is corrupt, or the end of the last whole batch."""
    end = 0
    with suppress(ApiError):
        for position, header in iter_headers(view):
            end = position + header.size
    return end


def _check_closed(view: memoryview, path: Path) -> None:
    """Check that a segment before the last one ends after a whole batch. Other bytes at its end are
    records that follow a wrong batch length.

    Raises:
        ApiError: CORRUPT_MESSAGE, naming the file.
    """
    end, position = len(view), 0
    while (size := whole_batch_size(view, position, end)) is not None:
        position += size
    if position != end:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{path}: its last {end - position} bytes are no whole batch, and it is not the last"
            " segment",
        )


def _position_of(view: memoryview, path: Path, offset: int) -> int:
    """The position from which to search for an offset, from the `.index`. 0 without one, or if at
    the position of its entry is no batch before the offset: damage must not hide records."""
    base = int(path.stem)
    if offset <= base:
        return 0
    try:
        data = path.with_suffix(".index").read_bytes()
    except FileNotFoundError:
        return 0
    entries = _INDEXED.iter_unpack(data[: len(data) // _INDEXED.size * _INDEXED.size])
    known: list[tuple[int, int]] = [
        (at, base + last) for last, at in entries if at > 0 and 0 < last <= offset - base
    ]
    if known:
        position, last_offset = max(known)
        with suppress(ApiError):
            header = read_header(view, position)
            validate_crc(view, position, header)
            if base < header.base_offset and header.last_offset <= last_offset:
                return position
    return 0


def _base_offsets(directory: Path) -> tuple[int, ...]:
    try:
        names = [_SEGMENT.fullmatch(path.name) for path in directory.iterdir() if path.is_file()]
    except FileNotFoundError:  # a broker has just renamed it, because its topic is deleted
        return ()
    return tuple(sorted(int(name[1]) for name in names if name is not None))


def _map_file(path: Path) -> memoryview:
    """Map a file into memory. The map is released with its last view.

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE, naming the file, if it does not exist any more.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{path} was deleted after the read was planned. "
            'To go on without it, set the source option "failOnDataLoss" to "false"',
        ) from None
    with file:
        if path.stat().st_size == 0:  # an empty file cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _with_path_in_errors(items: Iterator[Any], path: Path) -> Iterator[Any]:
    """Yield the items. Add the file's path to errors."""
    try:
        yield from items
    except ApiError as error:
        raise ApiError(error.code, f"{path}: {error.message}") from error
