"""Files and directories that are renamed out of use and removed `file.delete.delay.ms` later."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.storage.filesystem import FileSystem


class DeletionQueue:
    """What waits for removal, with the time it is due."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._files: list[tuple[int, str]] = []
        self._directories: list[tuple[int, str]] = []

    def add_files(self, paths: Iterable[str], due_ms: int) -> None:
        self._files += [(due_ms, path) for path in paths]

    def add_directory(self, path: str, due_ms: int) -> None:
        self._directories.append((due_ms, path))

    def run(self, now_ms: int) -> int:
        """Remove what is due; how many names went.

        Raises:
            OSError: the rest stays queued.
        """
        done = 0
        for queue, remove in (
            (self._files, self._fs.remove),
            (self._directories, self._fs.remove_tree),
        ):
            for item in [item for item in queue if item[0] <= now_ms]:
                queue.remove(item)
                remove(item[1])
                done += 1
        return done

    def forget(self, prefix: str) -> None:
        """Leave alone what lies under `prefix`: its disk failed."""
        self._files = [item for item in self._files if not item[1].startswith(prefix)]
        self._directories = [i for i in self._directories if not i[1].startswith(prefix)]
