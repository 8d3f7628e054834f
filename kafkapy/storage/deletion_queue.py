"""Files and directories that are renamed out of use and removed `file.delete.delay.ms` later."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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

    def run(self, now_ms: int) -> int:
        """Remove the files that are due. Returns their number.

        Raises:
            OSError: the rest stays queued.
        """
        done = 0
        for directory, files in list(self._files.items()):
            done += _remove_due(files, self._fs.remove, now_ms)
            if not files:
                del self._files[directory]
        return done + _remove_due(self._directories, self._fs.remove_tree, now_ms)

    def discard_files(self, directory: str) -> None:
        """Drop the files of a directory, which is about to be renamed."""
        self._files.pop(directory, None)


def _remove_due(due: dict[str, int], remove: Callable[[str], None], now_ms: int) -> int:
    paths = [path for path, due_ms in due.items() if due_ms <= now_ms]
    for path in paths:
        remove(path)
        del due[path]
    return len(paths)
