"""Joins and syncs at the border of two generations that the transcripts do not cover."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.group import GroupState
from tests.harness.cores.group_shell import GroupShell


def test_without_an_initial_delay_the_first_look_completes_the_join() -> None:
    config = GroupConfig(offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0)
    shell = GroupShell(config)
    _, token = shell.join_new()
    assert shell.coordinator.next_deadline_ms() == 0
    shell.advance(0)
    assert shell.replies[token].generation_id == 1


def test_dynamic_members_that_do_not_rejoin_are_dropped() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair(session_timeout_ms=600_000)
    token = shell.join(follower, protocols=[("range", b"new")])
    shell.advance(59_999)
    assert token not in shell.replies
    shell.advance(1)
    assert shell.replies[token].leader == follower
    assert shell.heartbeat(leader, 2) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("rebalance_timeout_ms", [1, 20_000])
def test_static_members_that_do_not_rejoin_are_waited_for(rebalance_timeout_ms: int) -> None:
    shell = GroupShell()
    fields = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": rebalance_timeout_ms}
    shell.join(group_instance_id="i1", **fields)
    shell.join(group_instance_id="i2", **fields)
    shell.advance(3_000 if rebalance_timeout_ms == 1 else 6_000)
    for instance_id in ("i2", "i1"):
        member_id = shell.group().static_members[instance_id]
        shell.sync(member_id, 1, group_instance_id=instance_id)
    third, token = shell.join_new(**fields)
    shell.leave(third)
    assert shell.replies[token].error is ErrorCode.UNKNOWN_MEMBER_ID
    looks = 0
    while shell.group().members:
        due_ms = shell.coordinator.next_deadline_ms()
        assert due_ms is not None
        shell.advance(due_ms - shell.now_ms)
        looks += 1
    assert looks < 110
    assert shell.group().state == GroupState.EMPTY
    assert shell.group().generation_id == 2


def test_nobody_syncs() -> None:
    shell = GroupShell()
    member_id, _ = shell.join_new(session_timeout_ms=100_000)
    shell.advance(3_000 + 59_999)
    assert shell.heartbeat(member_id, 1) is ErrorCode.NONE
    shell.advance(1)
    assert shell.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.group().state == GroupState.EMPTY


def test_a_new_member_whose_join_waits_too_long_is_given_up() -> None:
    shell = GroupShell()
    fields = {"session_timeout_ms": 1_000_000, "rebalance_timeout_ms": 1_000_000}
    leader, _ = shell.stable_pair(**fields)
    newcomer, token = shell.join_new(**fields)
    shell.advance(299_999)
    assert token not in shell.replies
    shell.advance(1)
    assert shell.replies[token].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer not in shell.group().members
    assert leader in shell.group().members


def test_a_member_that_leaves_while_its_sync_waits_is_answered() -> None:
    shell = GroupShell()
    shell.join_new()
    follower, _ = shell.join_new()
    shell.advance(6_000)
    token = shell.sync(follower, 1)
    assert shell.leave(follower) == [ErrorCode.NONE]
    assert shell.replies[token].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_sync_deadline_spares_a_group_whose_members_all_synced() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    for _ in range(10):
        shell.advance(9_000)
        for member_id in (leader, follower):
            assert shell.heartbeat(member_id, 1) is ErrorCode.NONE
    assert shell.group().state == GroupState.STABLE


def test_an_empty_generation_that_cannot_be_stored_is_empty_all_the_same() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.leave(leader, follower)
    assert shell.group().state == GroupState.EMPTY
    assert shell.group().generation_id == 2
