"""DeleteRecords answers when every live replica's log begins where it was asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsWait
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import Purgatory
from tests.harness.storage.partitions import batch, log_manager, make_partition, partition_state

NOW = 1_000_000


class Parked:
    """A leader of two replicas with three records, asked to delete the first two."""

    def __init__(self, directory: Path) -> None:
        self.partition: Partition = make_partition(log_manager(directory))
        self.partition.make_leader(partition_state(isr=(1, 2)), NOW)
        for _ in range(3):
            self.partition.append_as_leader(batch(), -1, NOW, NOW, 11)
        self.follower_begins_at(0)
        wait = DeleteRecordsWait(self.partition, self.partition.delete_records(2))
        self.answers: list[tuple[str, int]] = []
        self.purgatory = Purgatory("DeleteRecords")
        operation = DelayedDeleteRecords(
            NOW + 100,
            [wait],
            lambda: self.answers.append((wait.error.name, wait.low_watermark)),
        )
        self.purgatory.try_complete_else_watch(operation, ["t-0"])

    def follower_begins_at(self, offset: int) -> None:
        row = FetchPartition("t", ZERO_UUID, 0, 3, 1 << 20, follower_log_start_offset=offset)
        self.partition.read(row, 2, 0, 1 << 20, True, NOW)

    def check(self) -> list[tuple[str, int]]:
        self.purgatory.check("t-0")
        return self.answers


@pytest.fixture
def parked(tmp_path: Path) -> Parked:
    return Parked(tmp_path)


def test_it_answers_the_low_watermark_when_the_follower_has_followed(parked: Parked) -> None:
    parked.follower_begins_at(1)
    assert parked.check() == []
    parked.follower_begins_at(2)
    assert parked.check() == [("NONE", 2)]


def test_a_follower_that_died_is_not_waited_for(parked: Parked) -> None:
    parked.partition.is_live = lambda broker_id: False
    assert parked.check() == [("NONE", 2)]


def test_a_timeout_tells_how_far_it_came(parked: Parked) -> None:
    parked.follower_begins_at(1)
    parked.check()
    parked.purgatory.expire(NOW + 100)
    assert parked.answers == [("REQUEST_TIMED_OUT", 1)]


def test_losing_the_leadership_ends_the_wait(parked: Parked) -> None:
    parked.partition.make_follower(
        partition_state(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    )
    assert parked.check() == [("NOT_LEADER_OR_FOLLOWER", -1)]
