"""The FileSystem port and its production adapter: the one module of the package that may use `os`.

Each method is one system call (or the shortest safe sequence of them) and raises `OSError` as the
system does. The callers decide how to handle a failure, and when data must be durable.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Buffer = bytes | bytearray | memoryview

TEMPORARY_SUFFIX: Final = ".tmp"

_PRIVATE: Final = 0o600
_FSYNC_THREADS: Final = 16

T = TypeVar("T")


class Entry(NamedTuple):
    """One name of a directory. `size` in bytes, `modified_ms` in milliseconds since the epoch."""

    name: str
    is_dir: bool
    size: int
    modified_ms: int


class DiskSpace(NamedTuple):
    """Bytes of the volume that holds a path."""

    total: int
    usable: int


class File(Protocol):
    """An open file, read and written at explicit positions."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers` one after the other, or raise with an unknown part written."""
        ...

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def send(self, target_fd: int, size: int, position: int) -> int:
        """Move up to `size` bytes from `position` to a socket without reading them. Returns their
        number, which is 0 only at the end of the file. Raises BlockingIOError while the socket is
        full.
        """
        ...

    def fsync(self) -> None: ...

    def duplicate(self) -> File:
        """A second handle that outlives this one: for fsync in a worker thread."""
        ...

    def close(self) -> None: ...


class FileSystem(Protocol):
    """The operations of storage on a disk."""

    def open(self, path: str, create: bool = False) -> File:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""
        ...

    def make_private(self, path: str) -> None:
        """Restrict a file to its owner; it is created if it does not exist."""
        ...

    def list(self, path: str) -> list[Entry]:
        """The names of a directory. A name that is removed meanwhile may be missing."""
        ...

    def stat(self, path: str) -> Entry | None:
        """The entry of one path, or None if there is no such path."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents; no error if it exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomically give `source` the name `target`, replacing a file of that name."""
        ...

    def remove(self, path: str) -> None:
        """Remove one file; no error if it does not exist."""
        ...

    def remove_tree(self, path: str) -> Iterator[None]:
        """Remove a directory with its contents, a file at each step; no error if it does not
        exist."""
        ...

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        ...

    def rename_all(self, renames: Sequence[tuple[str, str]]) -> None:
        """`rename` many (source, target), in any order. The first error is raised."""
        ...

    def fsync_all(self, files: Sequence[File]) -> None:
        """Force files to disk, in any order. The first error is raised."""
        ...

    def fsync_dirs(self, paths: Sequence[str]) -> None:
        """Make the names in several directories durable, in any order."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None: ...

    def lock(self, path: str) -> File | None:
        """Take the exclusive lock `path` while the handle is open; None if it is taken."""
        ...

    def disk_space(self, path: str) -> DiskSpace: ...

    def open_files_limit(self) -> int:
        """The number of files this process may have open."""
        ...


class OsFile:
    """A POSIX file descriptor."""

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size:
            return data
        parts = [data]
        got = len(data)
        while parts[-1] and got < size:
            parts.append(os.pread(self._fd, size - got, position + got))
            got += len(parts[-1])
        return b"".join(parts)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        wanted = sum(map(len, buffers))
        try:
            done = os.pwritev(self._fd, buffers, position)
            if done == wanted:
                return
            # A short write: the rest in one piece, so that a full disk shows its own error.
            rest = memoryview(b"".join(buffers))
            while done < wanted:
                written = os.pwrite(self._fd, rest[done:], position + done)
                if written == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                done += written
        except OSError as error:
            raise self._with_path(error) from None

    def _with_path(self, error: OSError) -> OSError:
        """Add the file's path to an error of its descriptor."""
        return OSError(error.errno, error.strerror, self.path)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise self._with_path(error) from None

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def send(self, target_fd: int, size: int, position: int) -> int:
        return os.sendfile(target_fd, self._fd, position, size)

    def fsync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._with_path(error) from None

    def duplicate(self) -> OsFile:
        return OsFile(os.dup(self._fd), self.path)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsFileSystem:
    """The disk of this machine."""

    def open(self, path: str, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o644), path)

    def make_private(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, _PRIVATE)
        try:
            if stat.S_IMODE(os.fstat(fd).st_mode) != _PRIVATE:
                os.fchmod(fd, _PRIVATE)
        finally:
            os.close(fd)

    def list(self, path: str) -> list[Entry]:
        entries: list[Entry] = []
        with os.scandir(path) as found:
            for item in found:
                try:
                    entries.append(_entry(item.name, item.stat()))
                except FileNotFoundError:
                    if item.is_symlink():  # to a missing disk
                        raise
        return entries

    def stat(self, path: str) -> Entry | None:
        try:
            return _entry(path.rpartition("/")[2], os.stat(path))
        except FileNotFoundError:
            return None

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> Iterator[None]:
        try:
            if os.path.islink(path):
                os.unlink(path)  # its target is not the broker's, as in Kafka
                return
            with os.scandir(path) as items:
                entries = list(items)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self.remove_tree(entry.path)
                else:
                    self.remove(entry.path)
                    yield
            os.rmdir(path)
        except FileNotFoundError:
            return

    def fsync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename_all(self, renames: Sequence[tuple[str, str]]) -> None:
        _run_in_threads(lambda rename: self.rename(*rename), renames)

    def fsync_all(self, files: Sequence[File]) -> None:
        _run_in_threads(lambda file: file.fsync(), files)

    def fsync_dirs(self, paths: Sequence[str]) -> None:
        _run_in_threads(self.fsync_dir, paths)

    def set_modified(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def lock(self, path: str) -> OsFile | None:
        file = self.open(path, create=True)
        try:
            fcntl.lockf(file._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        return file

    def disk_space(self, path: str) -> DiskSpace:
        found = os.statvfs(path)
        return DiskSpace(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail)

    def open_files_limit(self) -> int:
        return os.sysconf("SC_OPEN_MAX")


def _run_in_threads(do: Callable[[T], None], things: Sequence[T]) -> None:
    """Run blocking disk operations in several threads, so that one journal commit serves all."""
    if len(things) == 1:
        do(things[0])
        return

    # Imported here, so that tools that only read files start sooner.
    from concurrent.futures import wait

    def do_share(number: int) -> None:
        for thing in things[number::_FSYNC_THREADS]:
            do(thing)

    # One task per thread: a task per item costs the event loop more than the wait for the disk.
    numbers = range(min(_FSYNC_THREADS, len(things)))
    shares = [_threads().submit(do_share, number) for number in numbers]
    # Wait for all threads: after a failure the caller may close the files.
    wait(shares)
    for share in shares:
        share.result()


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_FSYNC_THREADS, "kafkapy-disk")


class ReadOnlyFileSystem(OsFileSystem):
    """The disk for tools that read the files of another process, such as a running broker."""

    def open(self, path: str, create: bool = False) -> OsFile:
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)


def _entry(name: str, found: os.stat_result) -> Entry:
    return Entry(name, stat.S_ISDIR(found.st_mode), found.st_size, found.st_mtime_ns // 1_000_000)


def read_file(fs: FileSystem, path: str) -> bytes:
    """All bytes of a small file. Raises OSError (FileNotFoundError if it does not exist)."""
    file = fs.open(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def write_atomically(
    fs: FileSystem, path: str, data: bytes, durable: bool = True, private: bool = False
) -> None:
    """Replace a small file so that a crash leaves the old or the new one, never a mixture.

    `<path>.tmp`, fsync, rename, fsync of the directory, as Kafka's checkpoint writers do. Without
    `durable` the two fsyncs are left out: a crash of the machine may lose the new content. With
    `private` only the owner may ever read it.
    """
    temporary = path + TEMPORARY_SUFFIX
    fs.remove(temporary)
    if private:
        fs.make_private(temporary)
    file = fs.open(temporary, create=True)
    try:
        file.pwritev([data], 0)
        if durable:
            file.fsync()
    finally:
        file.close()
    fs.rename(temporary, path)
    if durable:
        fs.fsync_dir(path.rpartition("/")[0])
