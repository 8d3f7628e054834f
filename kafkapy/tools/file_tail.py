"""Follows one growing file, across rotation, truncation and restarts.

A `Cursor` is the position in a file, with the file's identity (device and inode) and a checksum of
its first bytes, so that a new file with the same name or inode is recognised.
"""

from __future__ import annotations

import os
import stat
import zlib
from contextlib import suppress
from errno import ELOOP, ENXIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkapy.tools import compressed_files

HEAD_BYTES: Final = 256
LINE_BYTES_MAX: Final = 900_000
"""A longer line becomes several records: brokers accept 1 MB by default."""


Identity = tuple[int, int]
"""The device and the inode of a file, which a rename does not change."""


class FileVersion(NamedTuple):
    """Equal as long as a name has the same file, and that has the same bytes."""

    device: int
    inode: int
    size: int
    modified_ns: int


def version_of(status: os.stat_result) -> FileVersion:
    """The version of the file with this status."""
    return FileVersion(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class Cursor(NamedTuple):
    """The file with this identity, whose first `head_bytes` have this CRC, was read up to `offset`.

    `offset` is the start of a line.
    """

    device: int
    inode: int
    offset: int = 0
    head_bytes: int = 0
    head_crc: int = 0

    @property
    def identity(self) -> Identity:
        return self.device, self.inode


class Line(NamedTuple):
    """A line without its end, and the position of its first byte."""

    value: bytes
    offset: int


class NotAFile(OSError):
    """A name is not a plain file: it is a symbolic link or below one, a pipe or a device."""


def is_plain_file(name: str) -> bool:
    """Whether a path names a plain file, and contains no symbolic link."""
    return os.path.realpath(name) == os.path.abspath(name) and os.path.isfile(name)


class FileTail:
    """One open file. It stays open after a rename, so its last lines are not lost."""

    def __init__(self, path: Path, cursor: Cursor | None = None) -> None:
        """Open `path`. Continue at `cursor` if it belongs to this file, else at the beginning.

        Raises:
            NotAFile: it is a symbolic link, or not a plain file: another user may have created it.
            OSError: it cannot be opened.
        """
        self.path = path
        self.idle_version: FileVersion | None = None
        """The version of the file at the last read, if that found no new line."""
        self._fd = _open(path)
        status = os.fstat(self._fd)
        self.cursor = Cursor(status.st_dev, status.st_ino)
        if cursor is not None and self._matches(cursor, status.st_size):
            self.cursor = cursor

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def reset_if_truncated(self) -> bool:
        """Whether the file was truncated, even if it has grown again since. If so, the cursor is
        reset to the beginning.
        """
        if self._matches(self.cursor, os.fstat(self._fd).st_size):
            return False
        self.cursor = Cursor(*self.cursor.identity)
        return True

    def is_replaced(self) -> bool:
        """Whether the path names another file now. False for a missing path, which may return."""
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) != self.cursor.identity

    def is_deleted(self) -> bool:
        """Whether the file has no name any more, so that no process can open it to write."""
        return os.fstat(self._fd).st_nlink == 0

    def compression(self) -> str | None:
        """The format of a compressed file of which no line was read, else None."""
        if self.cursor.offset > 0:
            return None
        return compressed_files.compression_of(os.pread(self._fd, compressed_files.HEAD_BYTES, 0))

    def skip_to_end(self) -> None:
        """Skip the existing lines, up to the end of the last one."""
        self.idle_version = version_of(os.fstat(self._fd))
        size = self.idle_version.size
        tail = os.pread(self._fd, LINE_BYTES_MAX, max(0, size - LINE_BYTES_MAX))
        self._advance(size - len(tail) + tail.rfind(b"\n") + 1)

    def read(self, max_bytes: int, *, ended: bool = False) -> list[Line]:
        """The next whole lines, about `max_bytes`; with `ended`, also a last, incomplete line."""
        version = version_of(os.fstat(self._fd))
        start = self.cursor.offset
        size = max(max_bytes, LINE_BYTES_MAX + 1)
        data = os.pread(self._fd, size, start)
        # A full read may end within a line that goes on in the file.
        ended = ended and len(data) < size
        lines: list[Line] = []
        at = 0
        while at < len(data):
            end = data.find(b"\n", at, at + LINE_BYTES_MAX + 1)
            if end >= 0:
                value, next_start = data[at:end].removesuffix(b"\r"), end + 1
            elif len(data) - at > LINE_BYTES_MAX:
                value, next_start = data[at : at + LINE_BYTES_MAX], at + LINE_BYTES_MAX
            elif ended:
                value, next_start = data[at:], len(data)
            else:
                break
            lines.append(Line(value, start + at))
            at = next_start
        self._advance(start + at)
        self.idle_version = None if lines else version
        return lines

    def _advance(self, offset: int) -> None:
        head_bytes = min(offset, HEAD_BYTES)
        if head_bytes != self.cursor.head_bytes:
            crc = zlib.crc32(os.pread(self._fd, head_bytes, 0))
            self.cursor = self.cursor._replace(head_bytes=head_bytes, head_crc=crc)
        self.cursor = self.cursor._replace(offset=offset)

    def _matches(self, cursor: Cursor, size: int) -> bool:
        """Whether the cursor belongs to this file, and the file still has the bytes read."""
        if cursor.identity != self.cursor.identity or size < cursor.offset:
            return False
        return zlib.crc32(os.pread(self._fd, cursor.head_bytes, 0)) == cursor.head_crc


def find_renamed(path: Path, cursor: Cursor) -> FileTail | None:
    """Find the cursor's file, if its new name begins with the old one, and it can be read."""
    for other in sorted(path.parent.glob(f"{_escaped(path.name)}*")):
        with suppress(OSError):  # it was renamed meanwhile, or may not be read
            status = other.lstat()
            if (status.st_dev, status.st_ino) == cursor.identity:
                tail = FileTail(other, cursor)
                if tail.cursor == cursor:
                    return tail
                tail.close()
    return None


def _open(path: Path) -> int:
    """Open a plain file. Raises OSError, NotAFile."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno in (ELOOP, ENXIO):
            raise NotAFile(error.errno, error.strerror, str(path)) from None
        raise
    # A directory may have been replaced since the name was found, so the open file is checked.
    if stat.S_ISREG(os.fstat(fd).st_mode) and _is_named(fd, path):
        return fd
    os.close(fd)
    raise NotAFile(ELOOP, "it is no plain file", str(path))


def _is_named(fd: int, path: Path) -> bool:
    """Whether the path contains no links and names the open file."""
    name = os.path.abspath(path)
    try:
        return os.path.realpath(name) == name and os.path.samestat(os.fstat(fd), os.lstat(name))
    except FileNotFoundError:
        return False


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def cursor_to_json(cursor: Cursor) -> dict[str, int]:
    """The cursor's JSON in the state file."""
    return cursor._asdict()


def cursor_from_json(data: Any) -> Cursor:
    """Read a cursor from JSON. Raises ValueError if it is malformed."""
    if not isinstance(data, dict) or data.keys() != set(Cursor._fields):
        raise ValueError(f"{data} is no cursor")
    return Cursor(**{name: int(value) for name, value in data.items()})
