"""SyncGroup beyond the state table: who waits for whom."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from tests.harness.cores.group_shell import GroupShell


def completing() -> tuple[GroupShell, str, str]:
    shell = GroupShell()
    leader, _ = shell.join_new()
    follower, _ = shell.join_new()
    shell.advance(6_000)
    return shell, leader, follower


def test_type_and_name_may_be_left_out_or_must_match() -> None:
    shell, leader, follower = completing()
    fields = {"protocol_type": "consumer", "protocol_name": "range"}
    waiting = shell.sync(follower, 1, **fields)
    result = shell.replies[shell.sync(leader, 1, {follower: b"all"})]
    assert (result.protocol_type, result.protocol_name) == ("consumer", "range")
    assert result.assignment == b""
    assert shell.replies[waiting].assignment == b"all"


def test_assignments_to_strangers_are_dropped() -> None:
    shell, leader, follower = completing()
    shell.sync(leader, 1, {"stranger": b"x", follower: b"F"})
    assert shell.replies[shell.sync(follower, 1)].assignment == b"F"
    assert set(shell.group().members) == {leader, follower}


def test_a_second_sync_of_a_member_releases_the_first() -> None:
    shell, leader, follower = completing()
    first = shell.sync(follower, 1)
    second = shell.sync(follower, 1)
    assert shell.replies[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    shell.sync(leader, 1, {follower: b"F"})
    assert shell.replies[second].assignment == b"F"


def test_the_leaders_first_assignment_counts() -> None:
    shell, leader, follower = completing()
    shell.hold()
    first = shell.sync(leader, 1, {follower: b"1"})
    second = shell.sync(leader, 1, {follower: b"2"})
    assert shell.replies[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(shell.held or []) == 1
    shell.release()
    assert shell.replies[second].error is ErrorCode.NONE
    assert shell.replies[shell.sync(follower, 1)].assignment == b"1"


def test_an_assignment_stored_for_another_generation_is_not_shared() -> None:
    shell, leader, follower = completing()
    shell.hold()
    late = shell.sync(leader, 1, {follower: b"late"})
    shell.join(follower, protocols=[("range", b"changed")])
    assert shell.replies[late].error is ErrorCode.REBALANCE_IN_PROGRESS
    shell.join(leader)
    waiting = shell.sync(follower, 2)
    shell.release()
    assert waiting not in shell.replies
    shell.sync(leader, 2, {follower: b"F"})
    assert shell.replies[waiting].assignment == b"F"
