"""A file system for a process that has few descriptors left."""

from __future__ import annotations

import errno
import os
from typing import Any

from kafkapy.storage.filesystem import Entry, File, FileSystem


class ShortFileSystem:
    """Wraps `fs`: opens up to `descriptors_left` more files, then raises EMFILE; None: no limit."""

    def __init__(self, fs: FileSystem) -> None:
        self.fs = fs
        self.descriptors_left: int | None = None

    def _check(self, path: str) -> None:
        if self.descriptors_left is not None and self.descriptors_left <= 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    def opened(self, file: File, path: str) -> File:
        if self.descriptors_left is not None:
            self.descriptors_left -= 1
        return _CountedFile(self, file, path)  # type: ignore[return-value]

    def open(self, path: str, create: bool = False) -> File:
        self._check(path)
        return self.opened(self.fs.open(path, create), path)

    def list(self, path: str) -> list[Entry]:
        self._check(path)
        return self.fs.list(path)

    def fsync_dir(self, path: str) -> None:
        self._check(path)
        self.fs.fsync_dir(path)

    def fsync_all(self, files: Any) -> None:
        for file in files:
            file.fsync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fs, name)


class ShortForPath(ShortFileSystem):
    """While `descriptors_left` is a number, files with `part` in their path cannot be opened:
    another process takes each descriptor that this one frees."""

    def __init__(self, fs: FileSystem, part: str) -> None:
        super().__init__(fs)
        self._part = part

    def _check(self, path: str) -> None:
        if self.descriptors_left is not None and self._part in path:
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE), path)


class _CountedFile:
    def __init__(self, disk: ShortFileSystem, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path

    def duplicate(self) -> File:
        self._disk._check(self._path)
        return self._disk.opened(self._file.duplicate(), self._path)

    def close(self) -> None:
        if self._disk.descriptors_left is not None:
            self._disk.descriptors_left += 1
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
