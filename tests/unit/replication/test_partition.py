"""Fetches that wait: a follower's position is noted once."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import READ_UNCOMMITTED
from tests.harness.storage.partitions import log_manager, make_partition, partition_state

NOW = 1_000_000


def test_a_completed_fetch_does_not_count_as_another_one(tmp_path: Path) -> None:
    partition = make_partition(log_manager(tmp_path))
    partition.make_leader(partition_state(isr=(1, 2)), NOW)
    wanted = FetchPartition("t", ZERO_UUID, 0, 0, 1 << 20, -1, -1, 0)
    for now_ms, is_first in ((NOW, True), (NOW + 500, False)):
        partition.read(wanted, 2, READ_UNCOMMITTED, 100, True, now_ms, updates_follower=is_first)
    assert partition.remote_replicas[2].last_fetch_ms == NOW
