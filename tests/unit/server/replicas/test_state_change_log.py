"""A broker's lines of state-change.log, letter for letter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import (
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.server.cluster.control_request_handler import Command
from tests.harness.cores.server_parts import Parts
from tests.harness.scripted import admins
from tests.harness.storage.partitions import TOPIC_ID, partition_state

IGNORING = "Ignoring LeaderAndIsr request from controller 3 with correlation id 9"


class Said:
    """Log lines of a broker that applies commands of controller 3, each as request 9."""

    def __init__(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        caplog.set_level("INFO", "state.change.logger")
        self.parts = Parts(directory)
        self._receiver = self.parts.control_request_handler(admins.store())

    def by(self, command: Command, correlation_id: int | None = 9) -> list[str]:
        """`LEVEL message` of each line, without the broker."""
        self._caplog.clear()
        asyncio.run(self._receiver.apply(command, correlation_id))
        lines = [r for r in self._caplog.records if r.name == "state.change.logger"]
        assert all(record.getMessage().startswith("[Broker id=1] ") for record in lines)
        return [f"{r.levelname} {r.getMessage().removeprefix('[Broker id=1] ')}" for r in lines]

    def by_leader_and_isr(self, *rows: LeaderAndIsrPartition, epoch: int = 4) -> list[str]:
        return self.by(LeaderAndIsrCommand(3, epoch, -1, list(rows)))


@pytest.fixture
def said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Said:
    return Said(tmp_path, caplog)


def test_leader_and_isr(said: Said) -> None:
    leading, following = partition_state(isr=(1, 2)), partition_state(2, (2, 1), partition=1)
    assert said.by_leader_and_isr(leading, following) == [
        "INFO Handling LeaderAndIsr request correlationId 9 from controller 3 for 2 partitions",
        f"INFO Leader t-0 with topic id Some({TOPIC_ID}) starts at leader epoch 0 from offset 0"
        " with partition epoch 0, high watermark 0, ISR [1,2], adding replicas [] and removing"
        " replicas [] . Previous leader None and previous leader epoch was -1.",
        "INFO Follower t-1 starts at leader epoch 0 from offset 0 with partition epoch 0 and high"
        " watermark 0. Current leader is 2. Previous leader None and previous leader epoch was -1.",
        "INFO Stopped fetchers as part of LeaderAndIsr request correlationId 9 from controller 3"
        " epoch 4 as part of the become-leader transition for 1 partitions",
        "INFO Stopped fetchers as part of become-follower request from controller 3 epoch 4 with"
        " correlation id 9 for 1 partitions",
        "INFO Finished LeaderAndIsr request in 0ms correlationId 9 from controller 3 for"
        " 2 partitions",
    ]


def test_a_change_of_leader_names_the_one_before_and_who_comes_and_goes(said: Said) -> None:
    said.by_leader_and_isr(partition_state(2, (2, 1)))
    said.parts.logs.update_topic_config("t", {"min.insync.replicas": "2"})
    row = partition_state(1, (1,), (1, 2, 3), leader_epoch=5, partition_epoch=6)
    row.adding_replicas, row.removing_replicas = (3,), (2,)
    assert said.by_leader_and_isr(row)[1] == (
        f"INFO Leader t-0 with topic id Some({TOPIC_ID}) starts at leader epoch 5 from offset 0"
        " with partition epoch 6, high watermark 0, ISR [1], adding replicas [3] and removing"
        " replicas [2] (under-min-isr). Previous leader Some(2) and previous leader epoch was 0."
    )


def test_a_partition_without_leader_has_nobody_to_follow(said: Said) -> None:
    assert (
        "ERROR Received LeaderAndIsrRequest with correlation id 9 from controller 3 epoch 4 for"
        " partition t-0 (last update controller epoch 1) but cannot become follower since the new"
        " leader -1 is unavailable."
    ) in said.by_leader_and_isr(partition_state(-1, (1,)))


def test_what_is_not_obeyed(said: Said) -> None:
    said.by_leader_and_isr(partition_state(leader_epoch=2))
    said.parts.replicas.offline.add(partition_state(partition=9).topic_partition)
    rows = [
        partition_state(leader_epoch=2),
        partition_state(leader_epoch=1),
        partition_state(2, (2, 3), leader_epoch=3),
    ]
    rows.append(partition_state(partition=9))
    lines = [line for row in rows for line in said.by_leader_and_isr(row)[1:-1]]
    assert lines == [
        f"INFO {IGNORING} epoch 4 for partition t-0 since its associated leader epoch 2 matches the"
        " current leader epoch",
        f"WARNING {IGNORING} epoch 4 for partition t-0 since its associated leader epoch 1 is"
        " smaller than the current leader epoch 2",
        f"WARNING {IGNORING} epoch 4 for partition t-0 as itself is not in assigned replica list"
        " 2,3",
        f"WARNING {IGNORING} epoch 4 for partition t-9 as the local replica for the partition is in"
        " an offline log directory",
    ]


def stopping(epoch: int, controller_epoch: int = 4) -> StopReplicaCommand:
    return StopReplicaCommand(3, controller_epoch, -1, [StopReplicaPartition("t", 0, epoch)])


def metadata(leader: int, controller_epoch: int = 4) -> UpdateMetadataCommand:
    state = partition_state(leader=leader).state
    rows = [UpdateMetadataPartition("t", TOPIC_ID, i, state, (1,)) for i in range(2)]
    return UpdateMetadataCommand(3, controller_epoch, -1, rows, [admins.broker(1)])


def test_stop_replica(said: Said) -> None:
    said.by_leader_and_isr(partition_state(leader_epoch=2))
    handling = (
        "INFO Handling StopReplica request correlationId 9 from controller 3 for 1 partitions"
    )
    assert said.by(stopping(1)) == [
        handling,
        "WARNING Ignoring StopReplica request from controller 3 with correlation id 9 epoch 4 for"
        " partition t-0 since its associated leader epoch 1 is smaller than the current leader"
        " epoch 2",
    ]
    assert said.by(stopping(2)) == [handling]


def test_update_metadata(said: Said) -> None:
    tail = (
        "partitions from metadata cache in response to UpdateMetadata request sent by controller 3"
        " epoch 4 with correlation id"
    )
    assert said.by(metadata(1)) == [f"INFO Add 2 partitions and deleted 0 {tail} 9"]
    assert said.by(metadata(-2)) == [f"INFO Add 0 partitions and deleted 2 {tail} 9"]
    assert [said.by(metadata(1), None)[-1][-1] for _ in range(2)] == ["0", "1"]


def test_a_controller_that_was_replaced(said: Said) -> None:
    said.by(metadata(1, controller_epoch=7))
    tail = "since its controller epoch 4 is old. Latest known controller epoch is 7"
    assert said.by_leader_and_isr(partition_state())[1:] == [f"WARNING {IGNORING} {tail}"]
    stop = IGNORING.replace("LeaderAndIsr", "StopReplica")
    assert said.by(stopping(2))[1:] == [f"WARNING {stop} {tail}"]
    assert said.by(metadata(1)) == [
        "WARNING Received update metadata request with correlation id 9 from an old controller 3"
        " with epoch 4. Latest known controller epoch is 7"
    ]
