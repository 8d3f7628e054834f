"""A file system whose n-th change of the disk fails, once or for good."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence

from kafkapy.storage.filesystem import Buffer, DiskSpace, Entry, File, FileSystem


class FaultyFileSystem:
    """Wraps `fs`. Change number `fail_at` (from 1; 0: none) raises ENOSPC; a write is half done.

    `for_good`: every later change fails as well. `changes` counts them. Only paths with `prefix`
    count. `before_change` is called with the path of each change, `after_write` with the path and
    the bytes of each write.
    """

    def __init__(
        self, fs: FileSystem, fail_at: int = 0, for_good: bool = False, prefix: str = ""
    ) -> None:
        self.fs = fs
        self.fail_at = fail_at
        self.for_good = for_good
        self.prefix = prefix
        self.changes = 0
        self.before_change: Callable[[str], None] = lambda path: None
        self.after_write: Callable[[str, Sequence[Buffer]], None] = lambda path, buffers: None

    def fails(self, path: str) -> bool:
        """Count a change of `path`. Returns whether it fails."""
        self.before_change(path)
        if not path.startswith(self.prefix):
            return False
        self.changes += 1
        if self.for_good:
            return 0 < self.fail_at <= self.changes
        return self.changes == self.fail_at

    def check(self, path: str) -> None:
        if self.fails(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def open(self, path: str, create: bool = False) -> File:
        if create and self.fs.stat(path) is None:
            self.check(path)
        return _FaultyFile(self, self.fs.open(path, create), path)

    def make_private(self, path: str) -> None:
        self.fs.make_private(path)

    def list(self, path: str) -> list[Entry]:
        return self.fs.list(path)

    def stat(self, path: str) -> Entry | None:
        return self.fs.stat(path)

    def make_dir(self, path: str) -> None:
        self.check(path)
        self.fs.make_dir(path)

    def rename(self, source: str, target: str) -> None:
        self.check(source)
        self.before_change(target)
        self.fs.rename(source, target)

    def remove(self, path: str) -> None:
        self.check(path)
        self.fs.remove(path)

    def remove_tree(self, path: str) -> Iterator[None]:
        self.check(path)
        yield from self.fs.remove_tree(path)

    def fsync_dir(self, path: str) -> None:
        self.check(path)
        self.fs.fsync_dir(path)

    def rename_all(self, renames: Sequence[tuple[str, str]]) -> None:
        for source, target in renames:
            self.rename(source, target)

    def fsync_all(self, files: Sequence[File]) -> None:
        for file in files:
            file.fsync()

    def fsync_dirs(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.fsync_dir(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self.check(path)
        self.fs.set_modified(path, modified_ms)

    def lock(self, path: str) -> File | None:
        self.check(path)
        return self.fs.lock(path)

    def disk_space(self, path: str) -> DiskSpace:
        return self.fs.disk_space(path)

    def open_files_limit(self) -> int:
        return self.fs.open_files_limit()


class _FaultyFile:
    def __init__(self, disk: FaultyFileSystem, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(size, position)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        if self._disk.fails(self._path):
            whole = b"".join(buffers)
            self._file.pwritev([whole[: len(whole) // 2]], position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._file.pwritev(buffers, position)
        self._disk.after_write(self._path, buffers)

    def truncate(self, size: int) -> None:
        self._disk.check(self._path)
        self._file.truncate(size)

    def size(self) -> int:
        return self._file.size()

    def send(self, target_fd: int, size: int, position: int) -> int:
        return self._file.send(target_fd, size, position)

    def fsync(self) -> None:
        self._disk.check(self._path)
        self._file.fsync()

    def duplicate(self) -> File:
        return _FaultyFile(self._disk, self._file.duplicate(), self._path)

    def close(self) -> None:
        self._file.close()
