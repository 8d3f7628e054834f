"""Partitions over real logs in a temporary directory, for tests of the parts above them."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.cluster_state import LeaderAndIsr, LeaderAndIsrPartition
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.partition import Partition
from kafkapy.storage.log_manager import LogManager
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.plugins.closing import Disk

TOPIC_ID = Uuid(bytes(range(16)))
LAG_MAX_MS = 1000


def log_manager(directory: Path, clock: ManualClock | None = None) -> LogManager:
    """An opened, empty log manager over one directory."""
    manager = LogManager(Disk(), [str(directory)], {}, clock or ManualClock(), SeededRandom())
    manager.open()
    manager.load({})
    return manager


def partition_state(
    leader: int = 1,
    isr: tuple[int, ...] = (1,),
    replicas: tuple[int, ...] | None = None,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    topic: str = "t",
    partition: int = 0,
    topic_id: Uuid = TOPIC_ID,
) -> LeaderAndIsrPartition:
    """A partition's state, as a controller sends it."""
    state = LeaderAndIsr(leader, leader_epoch, isr, partition_epoch, 1)
    return LeaderAndIsrPartition(
        topic, topic_id, partition, state, isr if replicas is None else replicas, is_new=True
    )


def make_partition(
    manager: LogManager, index: int = 0, overrides: dict[str, str] | None = None
) -> Partition:
    """A partition of broker 1 that has not received a LeaderAndIsr yet."""
    topic_partition = TopicPartition("t", index)
    log = manager.get_or_create_log(topic_partition, TOPIC_ID, overrides or {}, True)
    return Partition(topic_partition, TOPIC_ID, log, 1, LAG_MAX_MS)


def batch(count: int = 1, timestamp: int = 5, value: bytes = b"v") -> bytes:
    """A producer's batch of `count` records."""
    return build_batch([RecordData(b"k", value, timestamp, []) for _ in range(count)])
