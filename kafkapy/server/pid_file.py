"""The file that names the process of a broker, by which `kafkapy server stop` finds it."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Final

from kafkapy.storage.filesystem import File, FileSystem

logger = logging.getLogger("kafka.server.KafkaServer")

PID_FILE: Final = "kafkapy.pid"


class PidFile:
    """Has the pid, and is locked: the lock says whose file it is, until the process ends."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._held: tuple[str, File] | None = None

    def hold(self, path: str) -> None:
        """Write the pid, and keep the file locked."""
        try:
            lock = self._fs.lock(path)
            if lock is None:
                logger.warning("Another process has locked %s: it cannot hold the pid", path)
                return
            self._held = (path, lock)
            lock.truncate(0)
            lock.pwritev([b"%d\n" % os.getpid()], 0)
        except OSError as error:
            logger.warning("Cannot write %s: %s", path, error)

    def remove(self) -> None:
        """The lock stays: a broker that flushes its logs is a broker still."""
        if self._held is not None:
            with contextlib.suppress(OSError):
                self._fs.remove(self._held[0])

    def close(self) -> None:
        """Release the lock."""
        if self._held is not None:
            self._held[1].close()
