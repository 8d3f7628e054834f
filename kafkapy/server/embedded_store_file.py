"""The embedded store's file on the broker's disk: `zk.journal.JournalFile` over
`storage.filesystem`."""

from __future__ import annotations

from kafkapy.storage.filesystem import File, FileSystem, read_file, write_atomically


class EmbeddedStoreFile:
    """`embedded-store` in the first log directory; Kafka ignores plain files there."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self._path = path
        self._file: File | None = None
        self._size = 0

    def read(self) -> bytes:
        return read_file(self._fs, self._path) if self._fs.stat(self._path) else b""

    def append(self, data: bytes) -> None:
        file = self._open()
        file.pwritev([data], self._size)
        file.fsync()
        self._size += len(data)

    def truncate(self, size: int) -> None:
        file = self._open()
        file.truncate(size)
        file.fsync()
        self._size = size

    def replace(self, data: bytes) -> None:
        self.close()
        write_atomically(self._fs, self._path, data)
        self._size = len(data)

    def close(self) -> None:
        """Close the file; the next append opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> File:
        if self._file is None:
            self._file = self._fs.open(self._path, create=True)
            self._size = self._file.size()
        return self._file
