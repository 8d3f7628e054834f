"""The coordinator's messages: their defaults are Kafka's."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Effects
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    FetchedOffset,
    JoinGroupResult,
    OffsetToCommit,
)


def test_a_refused_join_has_no_generation() -> None:
    result = JoinGroupResult("m", ErrorCode.UNKNOWN_MEMBER_ID)
    assert (result.generation_id, result.leader, result.protocol_name) == (-1, "", None)
    assert result.members == []


def test_nothing_committed_is_minus_one_without_error() -> None:
    assert FetchedOffset() == (-1, -1, "", ErrorCode.NONE)


def test_a_commit_without_a_group_is_of_generation_minus_one() -> None:
    request = CommitOffsets("g", {})
    assert (request.generation_id, request.member_id, request.retention_time_ms) == (-1, "", -1)
    assert OffsetToCommit(5) == (5, -1, None, -1)


def test_effects_share_nothing() -> None:
    one, other = Effects(), Effects()
    one.replies.append(("token", JoinGroupResult("m")))
    assert not other.replies
