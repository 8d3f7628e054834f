"""Heartbeat and LeaveGroup beyond the state table."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import LeavingMember
from tests.harness.cores.group_shell import GroupShell

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID


def test_a_heartbeat_starts_the_session_anew() -> None:
    shell = GroupShell()
    _, follower = shell.stable_pair()
    shell.advance(9_999)
    assert shell.heartbeat(follower, 1) is NONE
    shell.advance(9_999)
    assert follower in shell.group().members
    shell.advance(1)
    assert shell.group().members == {}


def test_a_heartbeat_in_a_rebalance_counts_too() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    shell.join(leader)
    shell.advance(9_999)
    assert shell.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    shell.advance(9_999)
    assert follower in shell.group().members


def test_a_batch_of_leavers_is_answered_one_by_one() -> None:
    shell = GroupShell()
    shell.join(group_instance_id="i1")
    shell.join(group_instance_id="i2")
    dynamic, _ = shell.join_new()
    pending = shell.replies[shell.join()].member_id
    shell.advance(6_000)
    first = shell.group().static_members["i1"]
    second = shell.group().static_members["i2"]
    assert shell.leave(
        LeavingMember("", "i1"),
        LeavingMember("stale", "i2"),
        LeavingMember(second, "i2"),
        LeavingMember(dynamic),
        LeavingMember(pending),
        LeavingMember(first),
        LeavingMember(""),
        LeavingMember("", "i9"),
        LeavingMember("stale", "i9"),
    ) == [NONE, FENCED, NONE, NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    assert not shell.group().members
    assert not shell.group().pending_members


def test_a_pending_id_that_leaves_lets_the_others_go_on() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    pending = shell.replies[shell.join()].member_id
    shell.join(leader)
    token = shell.join(follower)
    assert token not in shell.replies
    assert shell.leave(pending) == [NONE]
    assert shell.replies[token].generation_id == 2
