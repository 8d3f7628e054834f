"""The machine of a broker: clock, randomness, disk, listening sockets, metadata connection, and the
pid file.

`Machine()` is the real machine; the simulator provides others.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from kafkapy.common.ports import Clock, Random
from kafkapy.common.system import SystemClock, SystemRandom
from kafkapy.server.cluster.metadata_connection import MetadataConnection, connect
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.config.listeners import Listener
from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
from kafkapy.server.network.acceptor import bind
from kafkapy.storage.filesystem import File, FileSystem, OsFileSystem

logger = logging.getLogger("kafka.server.KafkaServer")

PID_FILE: Final = "kafkapy.pid"
"""The file by which `kafkapy server stop` finds the process."""


Connect = Callable[
    [KafkaConfig, FileSystem, Clock, ZooKeeperMetrics], Awaitable[MetadataConnection]
]


class Machine(NamedTuple):
    """The ports of a broker process. The event loop, a sixth port, is the one that runs the broker.

    `bind` raises OSError; `connect` raises the errors of `metadata_connection.connect`.
    """

    clock: Clock = SystemClock()
    random: Random = SystemRandom()
    fs: FileSystem = OsFileSystem()
    bind: Callable[[Listener], socket.socket] = bind
    connect: Connect = connect


class PidFile:
    """The file with the pid of the broker. Its lock marks the pid as valid until the process
    ends."""

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
        """Remove the file, but keep its lock while the broker flushes its logs."""
        if self._held is not None:
            with contextlib.suppress(OSError):
                self._fs.remove(self._held[0])

    def close(self) -> None:
        """Release the lock."""
        if self._held is not None:
            self._held[1].close()
