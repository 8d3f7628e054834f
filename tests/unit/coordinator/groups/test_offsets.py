"""OffsetCommit: rows that are refused, timestamps and retention."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import OffsetToCommit
from tests.harness.cores.group_shell import T0, T1, WALL_MS, GroupShell


def stored(shell: GroupShell, partition: TopicPartition) -> Any:
    return shell.group().offsets.committed[partition].value


def test_a_commit_without_rows_is_answered() -> None:
    shell = GroupShell()
    assert shell.replies[shell.commit(offsets={})].errors == {}
    assert not shell.appends


def test_metadata_has_a_limit_of_its_own_row() -> None:
    shell = GroupShell()
    rows = {
        T0: OffsetToCommit(5, metadata="m" * 4_097),
        T1: OffsetToCommit(6, metadata="m" * 4_096),
    }
    errors = shell.replies[shell.commit(offsets=rows)].errors
    assert errors == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE, T1: ErrorCode.NONE}
    assert list(shell.group().offsets.committed) == [T1]


def test_only_rows_too_large_need_no_append() -> None:
    shell = GroupShell()
    token = shell.commit(offsets={T0: OffsetToCommit(5, metadata="m" * 4_097)})
    assert shell.replies[token].errors == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert not shell.appends


def test_timestamps_and_retention() -> None:
    shell = GroupShell()
    shell.clock.now_ms = 50
    shell.commit(offsets={T0: OffsetToCommit(5), T1: OffsetToCommit(5, commit_timestamp_ms=7)})
    assert stored(shell, T0).commit_timestamp_ms == WALL_MS + 50
    assert stored(shell, T1).commit_timestamp_ms == 7
    assert stored(shell, T0).expire_timestamp_ms is None
    shell.commit(retention_time_ms=1_000)
    assert stored(shell, T0).expire_timestamp_ms == WALL_MS + 1_050
    shell.commit(retention_time_ms=2**63 - 1)
    assert stored(shell, T0).expire_timestamp_ms == 2**63 - 1


@pytest.mark.parametrize("producer", [None, Producer(7, 0)], ids=["alone", "in a transaction"])
def test_an_empty_group_takes_commits_without_a_generation_from_anybody(
    producer: Producer | None,
) -> None:
    """As a static member's, whose consumer has not joined."""
    shell = GroupShell()
    who = {"member_id": "nobody", "group_instance_id": "static"}
    assert shell.replies[shell.commit(producer=producer, **who)].errors == {T0: ErrorCode.NONE}
    assert len(shell.appends) == 1
