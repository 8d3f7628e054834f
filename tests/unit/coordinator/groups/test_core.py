"""Records of groups and offsets, and the errors that clients get when appends fail."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.record_codec import offset_key
from tests.harness.cores.group_shell import T0, WALL_MS, GroupShell

GROUP_STORE = {
    "UNKNOWN_TOPIC_OR_PARTITION": "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS": "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "COORDINATOR_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER": "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
    "REQUEST_TIMED_OUT": "REBALANCE_IN_PROGRESS",
    "MESSAGE_TOO_LARGE": "UNKNOWN_SERVER_ERROR",
    "RECORD_LIST_TOO_LARGE": "UNKNOWN_SERVER_ERROR",
    "INVALID_FETCH_SIZE": "UNKNOWN_SERVER_ERROR",
    "CORRUPT_MESSAGE": "CORRUPT_MESSAGE",
}
OFFSET_STORE = {
    "UNKNOWN_TOPIC_OR_PARTITION": "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS": "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "COORDINATOR_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER": "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
    "MESSAGE_TOO_LARGE": "INVALID_COMMIT_OFFSET_SIZE",
    "RECORD_LIST_TOO_LARGE": "INVALID_COMMIT_OFFSET_SIZE",
    "INVALID_FETCH_SIZE": "INVALID_COMMIT_OFFSET_SIZE",
    "NETWORK_EXCEPTION": "COORDINATOR_LOAD_IN_PROGRESS",
    "REQUEST_TIMED_OUT": "REQUEST_TIMED_OUT",
}


@pytest.mark.parametrize(("failure", "told"), GROUP_STORE.items())
def test_members_are_told_of_a_group_that_could_not_be_stored(failure: str, told: str) -> None:
    shell = GroupShell()
    leader, _ = shell.join_new()
    shell.advance(3_000)
    shell.append_error = ErrorCode[failure]
    assert shell.replies[shell.sync(leader, 1)].error.name == told
    assert shell.group().state == "PreparingRebalance"


@pytest.mark.parametrize(("failure", "told"), OFFSET_STORE.items())
def test_commits_are_told_of_offsets_that_could_not_be_stored(failure: str, told: str) -> None:
    shell = GroupShell()
    shell.append_error = ErrorCode[failure]
    assert shell.replies[shell.commit()].errors[T0].name == told
    offsets = shell.group().offsets
    assert not offsets.committed
    assert not offsets.in_flight


def test_appends_say_where_and_when() -> None:
    shell = GroupShell()
    shell.clock.now_ms = 123
    shell.commit()
    (append,) = shell.appends
    assert (append.partition, append.leader_epoch, append.required_acks) == (0, 5, -1)
    (record,) = append.records
    assert (record.key, record.timestamp) == (offset_key("g", T0), WALL_MS + 123)
