"""OffsetCommit, OffsetFetch and OffsetDelete beyond the state table."""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import (
    DeleteOffsets,
    FetchedOffset,
    FetchOffsets,
    OffsetToCommit,
)
from tests.harness.cores.group_shell import T0, T1, WALL_MS, GroupShell

OTHER = TopicPartition("other", 0)


def fetch(shell: GroupShell, *partitions: TopicPartition, **fields: Any) -> dict[Any, Any]:
    request = FetchOffsets("g", partitions or None, **fields)
    result = shell.ask(shell.coordinator.fetch_offsets, request)
    assert result.error is ErrorCode.NONE
    offsets: dict[Any, Any] = result.offsets
    return offsets


def stored(shell: GroupShell, partition: TopicPartition) -> Any:
    return shell.group().offsets.committed[partition].value


def test_what_is_committed_is_fetched() -> None:
    shell = GroupShell()
    shell.commit(offsets={T0: OffsetToCommit(5, 3, "note"), T1: OffsetToCommit(6)})
    assert fetch(shell) == {T0: FetchedOffset(5, 3, "note"), T1: FetchedOffset(6, -1, "")}
    assert fetch(shell, T1, OTHER) == {T1: FetchedOffset(6, -1, ""), OTHER: FetchedOffset()}


def test_an_unknown_group_has_no_offsets() -> None:
    shell = GroupShell()
    assert fetch(shell) == {}
    assert fetch(shell, T0) == {T0: FetchedOffset()}


def test_a_commit_is_one_batch() -> None:
    shell = GroupShell()
    shell.commit(offsets={T0: OffsetToCommit(5), T1: OffsetToCommit(6)})
    assert [len(append.records) for append in shell.appends] == [2]


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
    assert list(fetch(shell)) == [T1]


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


def test_a_static_members_old_id_cannot_commit() -> None:
    shell = GroupShell()
    first = shell.join(group_instance_id="i1")
    shell.advance(3_000)
    old_id = shell.replies[first].member_id
    shell.sync(old_id, 1, group_instance_id="i1")
    shell.join(group_instance_id="i1")
    token = shell.commit(generation_id=1, member_id=old_id, group_instance_id="i1")
    assert shell.replies[token].errors == {T0: ErrorCode.FENCED_INSTANCE_ID}


def test_a_member_id_without_a_generation_is_checked() -> None:
    shell = GroupShell()
    _, follower = shell.stable_pair()
    token = shell.commit(member_id=follower)
    assert shell.replies[token].errors == {T0: ErrorCode.ILLEGAL_GENERATION}


def test_a_commit_is_a_sign_of_life() -> None:
    shell = GroupShell()
    _, follower = shell.stable_pair()
    shell.advance(9_000)
    shell.commit(generation_id=1, member_id=follower)
    shell.advance(9_000)
    assert follower in shell.group().members


def test_offsets_of_topics_in_use_are_kept() -> None:
    shell = GroupShell()
    shell.commit(offsets={T0: OffsetToCommit(1), OTHER: OffsetToCommit(2)})
    shell.stable_pair()
    request = DeleteOffsets("g", [T0, OTHER])
    result = shell.ask(shell.coordinator.delete_offsets, request)
    assert result.errors == {T0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, OTHER: ErrorCode.NONE}
    assert list(fetch(shell)) == [T0]


def test_unreadable_subscriptions_may_use_any_topic() -> None:
    shell = GroupShell()
    shell.commit()
    shell.stable_pair(protocols=[("range", b"opaque")])
    result = shell.ask(shell.coordinator.delete_offsets, DeleteOffsets("g", [OTHER]))
    assert result.errors == {OTHER: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_groups_that_are_no_consumers_keep_all_offsets() -> None:
    shell = GroupShell()
    shell.stable_pair(protocol_type="connect")
    result = shell.ask(shell.coordinator.delete_offsets, DeleteOffsets("g", [OTHER]))
    assert (result.error, result.errors) == (ErrorCode.NON_EMPTY_GROUP, {})


def test_an_empty_groups_offsets_can_be_deleted() -> None:
    shell = GroupShell()
    shell.commit(offsets={T0: OffsetToCommit(1), T1: OffsetToCommit(2)})
    result = shell.ask(shell.coordinator.delete_offsets, DeleteOffsets("g", [T0]))
    assert result.errors == {T0: ErrorCode.NONE}
    assert list(fetch(shell)) == [T1]


# in a producer's transaction (KIP-98, KIP-447)

PRODUCER = Producer(7, 0)


def unstable(shell: GroupShell) -> bool:
    return fetch(shell, T0, require_stable=True)[T0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_offsets_of_a_transaction_count_with_its_marker() -> None:
    shell = GroupShell()
    shell.commit(3)
    shell.commit(5, producer=PRODUCER)
    assert (fetch(shell, T0)[T0].offset, unstable(shell)) == (3, True)
    shell.coordinator.end_transaction(0, 7, committed=True)
    assert (fetch(shell, T0)[T0].offset, unstable(shell)) == (5, False)


def test_offsets_of_an_aborted_transaction_never_count() -> None:
    shell = GroupShell()
    shell.commit(5, producer=PRODUCER)
    shell.coordinator.end_transaction(0, 7, committed=False)
    assert (fetch(shell, T0)[T0].offset, unstable(shell)) == (-1, False)


def test_the_markers_of_another_producer_decide_nothing() -> None:
    shell = GroupShell()
    shell.commit(5, producer=PRODUCER)
    shell.coordinator.end_transaction(0, 8, committed=True)
    assert (fetch(shell, T0)[T0].offset, unstable(shell)) == (-1, True)


def test_offsets_of_a_transaction_are_written_within_it() -> None:
    shell = GroupShell()
    shell.commit(5, producer=PRODUCER)
    shell.commit(6)
    assert [append.producer for append in shell.appends] == [PRODUCER, None]


def test_offsets_of_a_transaction_that_are_not_stored_leave_nothing() -> None:
    shell = GroupShell()
    shell.append_error = ErrorCode.INVALID_PRODUCER_EPOCH
    token = shell.commit(5, producer=PRODUCER)
    assert shell.replies[token].errors == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}
    shell.coordinator.end_transaction(0, 7, committed=True)
    assert (fetch(shell, T0)[T0].offset, unstable(shell)) == (-1, False)


def test_offsets_are_unstable_before_they_are_stored() -> None:
    shell = GroupShell()
    shell.hold()
    shell.commit(5, producer=PRODUCER)
    assert unstable(shell)


def test_a_producer_need_not_be_a_member_but_a_stranger_may_not_say_it_is() -> None:
    shell = GroupShell()
    leader, _ = shell.stable_pair()

    def error(**fields: Any) -> Any:
        return shell.replies[shell.commit(5, producer=PRODUCER, **fields)].errors[T0]

    assert error() is ErrorCode.NONE
    assert error(member_id=leader, generation_id=1) is ErrorCode.NONE
    assert error(member_id=leader, generation_id=0) is ErrorCode.ILLEGAL_GENERATION
    assert error(member_id="x", generation_id=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_generation_of_a_group_that_is_not_there_has_no_members() -> None:
    shell = GroupShell()
    token = shell.commit(5, "new", producer=PRODUCER, member_id="x", generation_id=4)
    assert shell.replies[token].errors == {T0: ErrorCode.UNKNOWN_MEMBER_ID}
