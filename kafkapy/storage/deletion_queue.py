"""Files and directories that are renamed out of use and removed `file.delete.delay.ms` later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkapy.storage.filesystem import FileSystem


class DeletionQueue:
    """Files to remove, each with its time. Holds thousands of names cheaply."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._files: dict[str, dict[str, int]] = {}  # by directory
        self._directories: dict[str, int] = {}

    def add_files(self, paths: Iterable[str], due_ms: int) -> None:
        for path in paths:
            self._files.setdefault(path.rpartition("/")[0], {})[path] = due_ms

    def add_directory(self, path: str, due_ms: int) -> None:
        self._directories[path] = due_ms

    def run(self, now_ms: int) -> Iterator[int]:
        """Remove what is due, one file at each step: to remove a large file takes milliseconds.
        Yields 1 if the file or directory was queued itself, and 0 for a file of a directory.

        Raises:
            OSError: the rest stays queued.
        """
        for directory, files in list(self._files.items()):
            for path in _due(files, now_ms):
                if path in files:  # the files may be discarded between the steps
                    self._fs.remove(path)
                    del files[path]
                    yield 1
            if not files and self._files.get(directory) is files:
                del self._files[directory]
        for path in _due(self._directories, now_ms):
            for _ in self._fs.remove_tree(path):
                yield 0
            del self._directories[path]
            yield 1

    def discard_files(self, directory: str) -> None:
        """Drop the files of a directory, which is about to be renamed."""
        self._files.pop(directory, {}).clear()


def _due(paths: dict[str, int], now_ms: int) -> list[str]:
    return [path for path, due_ms in paths.items() if due_ms <= now_ms]
