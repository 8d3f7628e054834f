"""The file of the embedded store, and of a ZooKeeper server: `zk.embedded.journal.JournalFile` over
`filesystem`."""

from __future__ import annotations

from typing import Final

from kafkapy.storage.filesystem import File, FileSystem, read_file, write_atomically

EMBEDDED_STORE_FILE: Final = "embedded-store"
"""The file of a broker, in its first log directory."""


class EmbeddedStoreFile:
    """`embedded-store` in a broker's first log directory, where Kafka ignores plain files; or the
    data of a ZooKeeper server.

    It holds SCRAM verifiers and delegation tokens, so only the owner may read it. The permissions
    of a file from an earlier version are restricted when it is first read.
    """

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self._path = path
        self._file: File | None = None
        self._size = 0

    def read(self) -> bytes:
        if not self._fs.stat(self._path):
            return b""
        self._fs.make_private(self._path)
        return read_file(self._fs, self._path)

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
        write_atomically(self._fs, self._path, data, private=True)
        self._size = len(data)

    def close(self) -> None:
        """Close the file; the next append opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> File:
        if self._file is None:
            self._fs.make_private(self._path)
            self._file = self._fs.open(self._path)
            self._size = self._file.size()
        return self._file
