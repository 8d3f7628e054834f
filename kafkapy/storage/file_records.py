"""One `.log` file: appended at the end, read by position, searched by offset (`FileRecords`).

A long span for a socket stays in the file until it is sent (`FileRegion`).

Hot file. At most `FilePool.limit` files are open at a time; others are opened on their next use.
"""

from __future__ import annotations

import errno
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar, cast

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    read_header,
    whole_batch_size,
)
from kafkapy.storage.disk_errors import SHORTAGE_ERRNOS
from kafkapy.storage.durable_files import DurableFiles
from kafkapy.storage.filesystem import Entry, File, FileSystem

T = TypeVar("T")

OPEN_FILES_MAX: Final = 4096
REGION_BYTES_MIN: Final = 1 << 16
"""A shorter span costs less if it is read and sent together with the bytes around it."""
_SEARCH_BYTES: Final = 4096
_SCAN_BYTES: Final = 1 << 20
_LENGTH_MIN: Final = 14
_MAGICS: Final = (2, 1, 0)

# The fields of a v2 batch for a search by offset: base offset, length, magic, last offset delta.
_SEARCH_HEADER: Final = struct.Struct(">qi4xb6xi")


def open_files_for_logs(descriptors: int) -> int:
    """The number of descriptors that logs may open. Connections and everything else need the
    rest.
    """
    return min(OPEN_FILES_MAX, descriptors // 2)


class _PoolFileSystem:
    """A file system that takes descriptors from a pool if there are no others
    (`FilePool.with_descriptor`)."""

    def __init__(self, fs: FileSystem, pool: FilePool) -> None:
        self._fs = fs
        self._pool = pool

    def open(self, path: str, create: bool = False) -> File:
        return self._pool.with_descriptor(lambda: self._fs.open(path, create))

    def fsync_dir(self, path: str) -> None:
        self._pool.with_descriptor(lambda: self._fs.fsync_dir(path))

    def list(self, path: str) -> list[Entry]:
        return self._pool.with_descriptor(lambda: self._fs.list(path))

    def __getattr__(self, name: str) -> object:
        return getattr(self._fs, name)


class FilePool:
    """Bounds the number of open files, by the second-chance rule in order of opening.

    `fs` is for the other files of logs, in the thread of the pool. `durable` writes files that must
    survive a crash of the machine. At most `held_max` more files are kept open, for unsent records.
    """

    def __init__(self, fs: FileSystem, limit: int | None = None) -> None:
        self.fs = cast("FileSystem", _PoolFileSystem(fs, self))
        self.durable = DurableFiles(self.fs, self.close_files)
        self.limit = limit or open_files_for_logs(fs.open_files_limit())
        self.held_max = max(1, self.limit // 2)
        self._held: weakref.WeakSet[HeldFile] = weakref.WeakSet()
        self._open_files: dict[FileRecords, None] = {}

    def open(self, records: FileRecords, create: bool = False) -> File:
        """Open the file of `records`. At the limit, close one that was not used since its last
        chance.
        """
        while len(self._open_files) >= self.limit:
            self._close_oldest()
        file = self.fs.open(records.path, create)
        self._open_files[records] = None
        return file

    def with_descriptor(self, use: Callable[[], T]) -> T:
        """Run something that needs a descriptor. If connections use them all, files of segments are
        closed, which can be opened again: a change of a log that opens another file must not stop
        half-way.
        """
        while True:
            try:
                return use()
            except OSError as error:
                if error.errno not in SHORTAGE_ERRNOS or not self._open_files:
                    raise
                self._close_oldest()

    def _close_oldest(self) -> None:
        """Close the file that was opened first, or give it its second chance."""
        oldest = next(iter(self._open_files))
        del self._open_files[oldest]
        if oldest.recently_used:
            oldest.recently_used = False
            self._open_files[oldest] = None
        else:
            oldest.close_descriptor()

    def close_files(self) -> None:
        """Close all files. Each is opened again when it is used."""
        while self._open_files:
            self._close_oldest()

    def hold(self, file: File) -> HeldFile:
        """A duplicate of an open file.

        Raises:
            OSError: one of `disk_errors.DESCRIPTOR_ERRNOS`; too many files are held.
        """
        if len(self._held) >= self.held_max:
            raise OSError(errno.EMFILE, "too many files are held for clients that do not read")
        held = HeldFile(file.duplicate())
        self._held.add(held)
        return held

    def remove(self, records: FileRecords) -> None:
        """Remove the closed file of `records`."""
        self._open_files.pop(records, None)


class FileRecords:
    """The bytes of one segment. `size` counts the valid ones; a preallocated file is longer."""

    __slots__ = (
        "_file",
        "_held",
        "_pool",
        "close_count",
        "path",
        "recently_used",
        "size",
        "truncated_sizes",
    )

    def __init__(self, pool: FilePool, path: str, size: int) -> None:
        self._pool = pool
        self.path = path
        self.size = size
        self.recently_used = False
        self.truncated_sizes: tuple[int, ...] = ()  # the sizes to which it was truncated
        self.close_count = 0  # calls of `close_handle`: `path` may name another file after one
        self._file: File | None = None
        self._held: weakref.ref[HeldFile] | None = None

    @classmethod
    def create(cls, pool: FilePool, path: str, preallocate: int = 0) -> FileRecords:
        """A new empty file, stretched to `preallocate` bytes if that is positive."""
        records = cls(pool, path, 0)
        records._file = pool.open(records, create=True)
        records._file.truncate(0)
        if preallocate:
            records._file.truncate(preallocate)
        return records

    def handle(self) -> File:
        """The open file. Use it at once, since the use of another file may close it."""
        self.recently_used = True
        file = self._file
        if file is None:
            file = self._file = self._pool.open(self)
        return file

    def append(self, buffers: Sequence[Buffer], size: int) -> int:
        """Write `buffers` (`size` bytes together) at the end. Returns their position.

        Raises:
            OSError: nothing counts as appended, and a partial write is truncated if possible.
        """
        position = self.size
        file = self.handle()
        try:
            file.pwritev(buffers, position)
        except OSError:
            self._truncate_partial_write(file, position)
            raise
        self.size = position + size
        return position

    def _truncate_partial_write(self, file: File, position: int) -> None:
        try:
            file.truncate(position)
        except OSError:
            # The directory goes offline either way; recovery cuts the torn tail at the next start.
            return

    def read(self, position: int, size: int) -> bytes:
        """`size` bytes from `position`, fewer at the end of the file."""
        return self.handle().pread(size, position)

    def region(self, position: int, size: int) -> bytes | FileRegion:
        """`size` bytes from `position`, to be sent. A long span is not read: it is a region."""
        if size < REGION_BYTES_MIN:
            return self.read(position, size)
        return FileRegion(self, position, size)

    def duplicate(self) -> File:
        """Another handle, for a flush in another thread. If descriptors are short, it is opened
        anew: files of segments are closed for it.
        """
        try:
            return self.handle().duplicate()
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                raise
            return self._pool.fs.open(self.path)

    def hold(self) -> HeldFile:
        """The file, open as long as the returned object exists. All callers share it.

        Raises:
            OSError: the file cannot be opened, or too many are held.
        """
        held = None if self._held is None else self._held()
        if held is None:
            held = self._pool.hold(self.handle())
            self._held = weakref.ref(held)
        return held

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes. Also drops preallocated bytes."""
        self.handle().truncate(size)
        if size < self.size:
            self.truncated_sizes += (size,)
        self.size = size

    def truncate_durably(self, size: int) -> None:
        """Truncate durably: a crash must not restore bytes that later appends replace."""
        self.truncate(size)
        self.flush()

    def flush(self) -> None:
        self.handle().fsync()

    def close_handle(self) -> None:
        """Close the file, so that it can be renamed. The next use opens it again."""
        self.close_count += 1
        self.close_descriptor()

    def close_descriptor(self) -> None:
        """Close the descriptor in favour of another file. The next use opens the file again."""
        file, self._file = self._file, None
        if file is not None:
            self._pool.remove(self)
            file.close()

    def find(self, target: int, position: int) -> tuple[int, int, int] | None:
        """(position, size, base offset) of the first batch from `position` on that ends at or after
        the offset `target`; None if there is none.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        end = self.size
        while position < end:
            chunk = self.read(position, min(_SEARCH_BYTES, end - position))
            at, limit = 0, len(chunk) - _SEARCH_HEADER.size
            while at <= limit:
                base, length, magic, delta = _SEARCH_HEADER.unpack_from(chunk, at)
                size = length + LOG_OVERHEAD
                if length < _LENGTH_MIN or magic not in _MAGICS or position + at + size > end:
                    raise self._corrupt(position + at)
                if (base + delta if magic == MAGIC else base) >= target:
                    return position + at, size, base
                at += size
            if at == 0:
                # Fewer bytes are left than a v2 header has: a small old message, or damage.
                header = read_header(chunk)
                if header.last_offset >= target:
                    return position, header.size, header.base_offset
                at = header.size
            position += at
        return None

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch from `position` on, reading no records.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        end = self.size
        chunk, start = b"", position
        while position < end:
            if position - start + HEADER_SIZE > len(chunk):
                chunk = self.read(position, min(_SEARCH_BYTES, end - position))
                start = position
            try:
                header = read_header(chunk, position - start)
            except ApiError as error:
                raise self._corrupt(position) from error
            if position + header.size > end:
                raise self._corrupt(position)
            yield position, header
            position += header.size

    def check(self, position: int, header: BatchHeader) -> None:
        """Check the CRC of the batch that has this header.

        Raises:
            ApiError: CORRUPT_MESSAGE.
        """
        try:
            validate_crc(self.read(position, header.size), 0, header)
        except ApiError as error:
            raise self._corrupt(position) from error

    def _corrupt(self, position: int) -> ApiError:
        return ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"{self.path} holds no valid batch at position {position}"
        )


class HeldFile:
    """A duplicate of a segment's descriptor, shared by all unsent regions of the segment.

    With one descriptor per region, one Fetch request with many entries used all descriptors of
    the process.
    """

    __slots__ = ("__weakref__", "file")

    def __init__(self, file: File) -> None:
        self.file = file

    def __del__(self) -> None:
        self.file.close()


class RegionInvalidated(OSError):
    """The bytes of a region are no longer in its file, although the disk works."""


class FileRegion:
    """Bytes of a segment that the kernel sends to a socket (`sendfile`).

    Its length is the number of unsent bytes. A region that cannot be sent at once must be held
    (`hold`), because the segment may be closed or deleted, and its name reused. Without `hold` it
    can be sent until its owner closes the file. After a truncation below its end, no more of it is
    sent, because other records may be at that position.
    (`org.apache.kafka.common.record.FileRecords.writeTo`.)
    """

    __slots__ = ("_close_count", "_held", "_position", "_records", "_size", "_truncation_count")

    def __init__(self, records: FileRecords, position: int, size: int) -> None:
        self._records = records
        self._position = position
        self._size = size
        self._close_count = records.close_count
        self._truncation_count = len(records.truncated_sizes)
        self._held: HeldFile | None = None

    def __len__(self) -> int:
        return self._size

    def hold(self) -> None:
        """Keep the file open until the region is sent or dropped. Raises OSError."""
        if self._held is None:
            self._held = self._records.hold()

    def send(self, target_fd: int) -> None:
        """Send as much as the socket accepts.

        Raises:
            BlockingIOError: the socket is full.
            OSError: the connection is closed, or the file was removed or truncated.
        """
        sent = self._file().send(target_fd, self._size, self._position)
        if sent == 0:
            raise self._truncated_error()
        self._advance(sent)

    def take(self, size: int) -> bytes:
        """Read the next `size` bytes, fewer at the end. Raises OSError."""
        taken = self._file().pread(min(size, self._size), self._position)
        if len(taken) < min(size, self._size):
            raise self._truncated_error()
        self._advance(len(taken))
        return taken

    def _file(self) -> File:
        if any(
            size < self._position + self._size
            for size in self._records.truncated_sizes[self._truncation_count :]
        ):
            raise self._truncated_error()
        if self._held is not None:
            return self._held.file
        if self._close_count != self._records.close_count:
            raise RegionInvalidated(f"{self._records.path} was closed before its records were sent")
        return self._records.handle()

    def _advance(self, size: int) -> None:
        self._position += size
        self._size -= size

    def _truncated_error(self) -> RegionInvalidated:
        end = self._position + self._size
        return RegionInvalidated(f"{self._records.path} was cut before position {end}")


def scan_batches(
    file: File, position: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, bytes) of every whole batch of `file` in [position, end).

    Reads large pieces. Ends at a batch that claims more bytes than remain. The CRC is not checked.

    Raises:
        ApiError: CORRUPT_MESSAGE on bytes that cannot begin a batch.
    """
    wanted = _SCAN_BYTES
    while position < end:
        view = memoryview(file.pread(min(wanted, end - position), position))
        at = 0
        while (size := whole_batch_size(view, at, len(view))) is not None:
            yield position + at, read_header(view, at), view[at : at + size]
            at += size
        if at == 0:
            size = _claimed_size(view)
            if size <= len(view) or position + size > end:
                return
            wanted = size
        else:
            wanted = _SCAN_BYTES
        position += at


def _claimed_size(view: memoryview) -> int:
    return LOG_OVERHEAD + int.from_bytes(view[8:12], "big") if len(view) >= LOG_OVERHEAD else 0
