"""The sentences of `--verify`."""

from __future__ import annotations

import pytest

from kafkapy.admin.log_dirs import Replica, ReplicaPlace
from kafkapy.admin.reassignments import Reassignment
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.states import LogDirMove, LogDirState, partition_states

T0, T1, T2, U0 = (*(TopicPartition("t", p) for p in range(3)), TopicPartition("u", 0))


def test_partitions() -> None:
    targets = {U0: (1,), T2: (1, 2), T1: (2, 1), T0: (1, 2)}
    current = {T0: (1, 2), T1: (1, 2), T2: (1, 3)}
    running = {T2: Reassignment((2,), (3,), (1, 2, 3))}
    states = partition_states(targets, current, running)
    assert list(map(str, states)) == [
        "Reassignment of partition t-0 is completed.",
        "There is no active reassignment of partition t-1, but replica set is 1,2 rather than 2,1.",
        "Reassignment of partition t-2 is still in progress.",
        "There is no active reassignment of partition u-0, but replica set is  rather than 1.",
    ]
    assert [state.is_complete for state in states] == [True, False, False, False]


@pytest.mark.parametrize(
    ("place", "state", "said", "is_over"),
    [
        (
            ReplicaPlace("/b"),
            LogDirState.COMPLETED,
            "Reassignment of replica t-0-1 completed successfully.",
            True,
        ),
        (
            ReplicaPlace("/a", "/b"),
            LogDirState.MOVING,
            "Reassignment of replica t-0-1 is still in progress.",
            False,
        ),
        (
            ReplicaPlace("/a", "/c"),
            LogDirState.MOVING_ELSEWHERE,
            "Partition t-0 on broker 1 is being moved to log dir /c instead of /b.",
            False,
        ),
        (
            ReplicaPlace("/a"),
            LogDirState.CANCELLED,
            "Partition t-0 on broker 1 is not being moved from log dir /a to /b.",
            True,
        ),
        (
            ReplicaPlace(),
            LogDirState.NO_LOG_DIR,
            "Partition t-0 is not found in any live log dir on broker 1. There is likely an offline"
            " log directory on the broker.",
            False,
        ),
        (
            None,
            LogDirState.NO_BROKER,
            "Partition t-0 cannot be found in any live log directory on broker 1.",
            False,
        ),
    ],
)
def test_log_directories(
    place: ReplicaPlace | None, state: LogDirState, said: str, is_over: bool
) -> None:
    move = LogDirMove(Replica("t", 0, 1), "/b", place)
    assert (move.state, str(move), move.state.is_over) == (state, said, is_over)
