"""A file system that counts the waits for the disk (fsync)."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.storage.filesystem import File
from tests.harness.plugins.closing import Disk


class CountingFileSystem(Disk):
    """Records each wait for the disk as its number of files, 0 for a directory."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[int] = []

    def fsync_all(self, files: Sequence[File]) -> None:
        self.waits.append(len(files))
        super().fsync_all(files)

    def fsync_dir(self, path: str) -> None:
        self.waits.append(0)
        super().fsync_dir(path)
