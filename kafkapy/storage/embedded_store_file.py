"""The file of the embedded store, and of a ZooKeeper server: `zk.embedded.journal.JournalFile` over
`filesystem`."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Final

from kafkapy.storage.filesystem import TEMPORARY_SUFFIX, File, FileSystem, read_file

EMBEDDED_STORE_FILE: Final = "embedded-store"
"""The file of a broker, in its first log directory."""

_UNSYNCED_BYTES_MAX: Final = 1 << 20  # in a rewrite: the most its last fsync has to write


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
        self._rewrite: Rewrite | None = None
        self._is_renamed = False  # and the rename is not durable yet

    def read(self) -> bytes:
        if not self._fs.stat(self._path):
            return b""
        self._fs.make_private(self._path)
        return read_file(self._fs, self._path)

    def append(self, data: bytes) -> None:
        self._sync_name()
        file = self._open()
        file.pwritev([data], self._size)
        file.fsync()
        self._size += len(data)

    def truncate(self, size: int) -> None:
        file = self._open()
        file.truncate(size)
        file.fsync()
        self._size = size

    def rewrite(self) -> Rewrite:
        if self._rewrite is not None:
            self._rewrite.abandon()
        self._rewrite = Rewrite(self._fs, self._path + TEMPORARY_SUFFIX, self)
        return self._rewrite

    def replace_with(self, temporary: str, file: File, size: int) -> None:
        """Replace this file with a complete rewrite, open as `file`. After an OSError this file
        stays.

        The file remains open: if the next append had to open it, clients that use up the
        descriptors could end the server.
        """
        self._fs.rename(temporary, self._path)
        self._is_renamed = True
        self._close_file()  # before the fsync, which needs a descriptor
        self._file, self._size = file, size
        with suppress(OSError):  # the next append tries again, and raises it
            self._sync_name()

    def close(self) -> None:
        """Close the file, and abandon a rewrite. The next append opens the file again."""
        if self._rewrite is not None:
            self._rewrite.abandon()
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _sync_name(self) -> None:
        if self._is_renamed:
            self._fs.fsync_dir(self._path.rpartition("/")[0])
            self._is_renamed = False

    def _open(self) -> File:
        if self._file is None:
            self._fs.make_private(self._path)
            self._file = self._fs.open(self._path)
            self._size = self._file.size()
        return self._file


class Rewrite:
    """The next content of an `EmbeddedStoreFile`, in a file beside it."""

    def __init__(self, fs: FileSystem, path: str, store: EmbeddedStoreFile) -> None:
        self._fs = fs
        self._path = path
        self._store = store
        fs.remove(path)
        fs.make_private(path)
        self._file: File | None = fs.open(path, create=True)
        self._size = self._synced = 0

    def write(self, data: bytes) -> None:
        file = self._open_file()
        file.pwritev([data], self._size)
        self._size += len(data)
        if self._size - self._synced >= _UNSYNCED_BYTES_MAX:
            file.fsync()
            self._synced = self._size

    def finish(self, head: bytes) -> None:
        file = self._open_file()
        file.pwritev([head], 0)
        file.fsync()
        self._store.replace_with(self._path, file, self._size)
        self._file = None

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with suppress(OSError):  # the next rewrite removes it
                self._fs.remove(self._path)

    def _open_file(self) -> File:
        if self._file is None:
            raise OSError(errno.EBADF, "the rewrite was abandoned", self._path)
        return self._file
