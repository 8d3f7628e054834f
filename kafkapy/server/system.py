"""The machine of a broker: clock, randomness, disk, listening sockets and its metadata connection.

`Machine()` is this machine; the simulator makes others. The production Clock and Random are here:
one line a verb.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kafkapy.common.ports import Clock, Random
from kafkapy.server.cluster.metadata_connection import MetadataConnection, connect
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.config.listeners import Listener
from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
from kafkapy.server.network.acceptor import bind
from kafkapy.storage.filesystem import FileSystem, OsFileSystem


class SystemClock:
    """`common.ports.Clock` over the machine's clocks."""

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SystemRandom:
    """`common.ports.Random` over the machine's entropy."""

    def below(self, n: int) -> int:
        return random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)


Connect = Callable[
    [KafkaConfig, FileSystem, Clock, ZooKeeperMetrics], Awaitable[MetadataConnection]
]


class Machine(NamedTuple):
    """The ports of a broker process. The event loop is the sixth: whoever runs the broker has it.

    `bind` raises OSError; `connect` as `metadata_connection.connect`.
    """

    clock: Clock = SystemClock()
    random: Random = SystemRandom()
    fs: FileSystem = OsFileSystem()
    bind: Callable[[Listener], socket.socket] = bind
    connect: Connect = connect
