"""Makes small files and new names durable, each at once or many with one wait.

A file system that forces one file after another commits its journal for each. If all are forced
after the last write, it commits a few times. Kafka waits for each (`CheckpointFile.write`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kafkapy.storage.disk_errors import SHORTAGE_ERRNOS
from kafkapy.storage.filesystem import TEMPORARY_SUFFIX, File, FileSystem, write_atomically

_OPEN_FILES_MAX: Final = 256
"""The number of files that are open at a time while many are written."""


class DurableFiles:
    """Writes durable files. `write` and `fsync_dir` return when the change is durable, except
    inside `defer_writes`. `free_descriptors` closes files that can be opened again. It is called
    when descriptors are short.
    """

    def __init__(self, fs: FileSystem, free_descriptors: Callable[[], None] = lambda: None) -> None:
        self._fs = fs
        self._free_descriptors = free_descriptors
        self._is_deferring = False
        self._files: dict[str, bytes] = {}
        self._directories: dict[str, None] = {}

    def write(self, path: str, data: bytes) -> None:
        """Replace a small file atomically (`write_atomically`)."""
        if self._is_deferring:
            self._files[path] = data
        else:
            write_atomically(self._fs, path, data)

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        if self._is_deferring:
            self._directories[path] = None
        else:
            self._fs.fsync_dir(path)

    @contextmanager
    def defer_writes(self) -> Iterator[None]:
        """Delay the writes in this context until the caller's `commit` of each directory."""
        self._is_deferring = True
        try:
            yield
        finally:
            self._is_deferring = False

    def commit(self, directory: str) -> None:
        """Make the delayed writes in and below a directory durable. Raises OSError."""
        if not self._files and not self._directories:
            return
        below = f"{directory}/"
        files = {path: data for path, data in self._files.items() if path.startswith(below)}
        directories = [path for path in self._directories if f"{path}/".startswith(below)]
        self._files = {path: data for path, data in self._files.items() if path not in files}
        self._directories = {path: None for path in self._directories if path not in directories}
        paths = list(files)
        for start in range(0, len(paths), _OPEN_FILES_MAX):
            some = {path: files[path] for path in paths[start : start + _OPEN_FILES_MAX]}
            try:
                self._replace(some)
            except OSError as error:
                if error.errno not in SHORTAGE_ERRNOS:
                    raise
                self._free_descriptors()
                for path, data in some.items():  # slow, but one file is open at a time
                    write_atomically(self._fs, path, data)
        parents = (path.rpartition("/")[0] for path in paths)
        self._fsync_dirs(list(dict.fromkeys((*parents, *directories))))

    def _fsync_dirs(self, paths: list[str]) -> None:
        try:
            self._fs.fsync_dirs(paths)
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                raise
            self._free_descriptors()
            for path in paths:
                self._fs.fsync_dir(path)

    def discard_below(self, directory: str) -> None:
        """Drop the delayed writes in a directory that is renamed or removed."""
        below = f"{directory}/"
        self._files = {p: data for p, data in self._files.items() if not p.startswith(below)}
        self._directories.pop(directory, None)

    def discard_all(self) -> None:
        """Drop the delayed writes of a directory that is out of service."""
        self._files.clear()
        self._directories.clear()

    def _replace(self, files: dict[str, bytes]) -> None:
        written: list[File] = []
        try:
            for path, data in files.items():
                self._fs.remove(path + TEMPORARY_SUFFIX)
                file = self._fs.open(path + TEMPORARY_SUFFIX, create=True)
                written.append(file)
                file.pwritev([data], 0)
            self._fs.fsync_all(written)
        finally:
            for file in written:
                file.close()
        # On ext4, each rename waits if it replaces an existing file.
        self._fs.rename_all([(path + TEMPORARY_SUFFIX, path) for path in files])
