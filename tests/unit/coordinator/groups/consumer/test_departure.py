"""Members that leave, fall silent, or do not revoke."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroupState
from tests.harness.cores.consumer_shell import (
    REVOCATION_MS,
    SESSION_MS,
    ConsumerShell,
    facts,
    settle,
)


def test_the_others_get_what_a_leaving_member_had() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a"), shell.consumer("b")
    settle([first, second])
    result = first.leave()
    assert (result.error, result.member_id, result.member_epoch) == (ErrorCode.NONE, "a", -1)
    second.beat()
    assert len(second.partitions) == 4


def test_a_group_whose_last_member_left_is_empty() -> None:
    shell = ConsumerShell()
    shell.consumer("m").leave()
    assert shell.consumers.state is ConsumerGroupState.EMPTY
    assert shell.consumers.owners == {}
    assert shell.coordinator.next_deadline_ms() is None
    assert len(shell.consumer("n").partitions) == 4


def test_who_cannot_leave() -> None:
    shell = ConsumerShell()
    assert shell.refused("m", -1) is ErrorCode.GROUP_ID_NOT_FOUND
    shell.consumer("m", instance_id="i")
    assert shell.refused("n", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.refused("m", -1, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.refused("n", -1, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_silent_member_is_removed_after_its_session() -> None:
    shell = ConsumerShell()
    silent, second = shell.consumer("a"), shell.consumer("b")
    settle([silent, second])
    shell.advance(SESSION_MS - 1)
    second.beat()
    assert "a" in shell.consumers.members
    shell.advance(1)
    assert "a" not in shell.consumers.members
    second.beat()
    assert len(second.partitions) == 4
    assert silent.beat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a"), shell.consumer("b")
    first.beat()  # it is told to revoke
    for _ in range(REVOCATION_MS // 10_000):
        assert "a" in shell.consumers.members
        shell.advance(10_000)
        shell.beat("a", 1)  # alive, and says nothing of its partitions
        second.beat()
    assert "a" not in shell.consumers.members
    second.beat()
    assert len(second.partitions) == 4


def test_a_member_that_revokes_has_time_for_the_next_revocation() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a"), shell.consumer("b")
    settle([first, second])
    for _ in range(2 * REVOCATION_MS // 10_000):
        shell.advance(10_000)
        first.beat()
        second.beat()
    assert {*shell.consumers.members} == {"a", "b"}


def test_sessions_begin_anew_with_a_coordinator() -> None:
    shell = ConsumerShell()
    members = [shell.consumer("a"), shell.consumer("b")]
    settle(members)
    shell.advance(SESSION_MS - 1)
    shell.fail_over()
    shell.advance(SESSION_MS - 1)
    assert {*shell.consumers.members} == {"a", "b"}
    shell.advance(1)
    assert shell.consumers.members == {}


def test_a_revocation_is_limited_by_the_next_coordinator_too() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a"), shell.consumer("b")
    first.beat()
    shell.fail_over()
    for _ in range(REVOCATION_MS // 10_000):
        assert "a" in shell.consumers.members
        shell.advance(10_000)
        shell.beat("a", 1)
        second.beat()
    assert "a" not in shell.consumers.members


def test_a_static_member_that_restarts_during_a_revocation_leaves_what_its_record_has() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a", instance_id="i")
    shell.consumer("b")
    first.beat()  # it is told to revoke
    first.leave(-2)
    before = facts(shell.consumers)
    shell.fail_over()
    assert facts(shell.consumers) == before


def test_an_unloaded_group_has_no_deadlines() -> None:
    shell = ConsumerShell()
    shell.consumer("a")
    shell.perform(shell.coordinator.unload(0))
    assert shell.coordinator.next_deadline_ms() is None


def test_a_regular_expression_goes_with_its_last_member() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a", topics=None, regex="t.*")
    second = shell.consumer("b", topics=None, regex="t.*")
    first.leave()
    assert [*shell.consumers.regexes] == ["t.*"]
    second.leave()
    assert shell.consumers.regexes == {}
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    assert replayed.consumer.regexes == {}
