"""Answers wait for the log, and what is not in the log is written again."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from kafkapy.coordinator.groups.consumer.records import ConsumerKey, RecordType
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat
from tests.harness.cores.consumer_shell import (
    SESSION_MS,
    ConsumerShell,
    FakeConsumer,
    facts,
    settle,
)
from tests.harness.cores.share_shell import ShareShell


def test_changes_are_applied_as_they_are_made_and_the_last_counts() -> None:
    changes = Changes(ConsumerGroup("g"))
    changes.put(RecordType.GROUP_EPOCH, 1)
    changes.put(RecordType.GROUP_EPOCH, 2)
    changes.erase(ConsumerKey(RecordType.MEMBER, "g", "m"))
    assert changes.group.epoch == 2
    assert len(changes.records) == 2


def test_a_join_is_answered_when_it_is_in_the_log() -> None:
    shell = ConsumerShell()
    shell.hold()
    token = shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, "m").request())
    assert token not in shell.replies
    shell.release()
    assert shell.replies[token].member_epoch == 1


def test_a_heartbeat_that_writes_nothing_waits_for_what_it_tells() -> None:
    shell = ConsumerShell()
    shell.hold()
    join = shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, "m").request())
    token = shell.beat("m", 1)
    assert token not in shell.replies
    shell.release()
    assert shell.replies[join].error is shell.replies[token].error is ErrorCode.NONE


def test_the_codes_of_an_append_that_failed() -> None:
    for error, told in (
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        shell = ConsumerShell()
        shell.append_error = error
        assert FakeConsumer(shell, "m").beat().error is told


def test_what_could_not_be_appended_is_undone() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    before = facts(shell.consumers)
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    second = FakeConsumer(shell, "b")
    second.beat()
    assert facts(shell.consumers) == before
    shell.append_error = ErrorCode.NONE
    settle([first, second])
    assert len(first.partitions) == len(second.partitions) == 2
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    assert facts(replayed.consumer) == facts(shell.consumers)


def test_a_join_that_is_undone_leaves_no_deadline() -> None:
    shell = ConsumerShell()
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    FakeConsumer(shell, "m").beat()
    assert shell.coordinator.next_deadline_ms() is None


def test_a_write_that_fails_after_the_partition_went_away_starts_no_timers() -> None:
    shell = ConsumerShell()
    shell.hold()
    shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, "m").request())
    shell.perform(shell.coordinator.unload(0))
    shell.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert shell.coordinator.next_deadline_ms() is None


def test_nothing_is_answered_that_builds_on_what_is_not_in_the_log() -> None:
    shell = ConsumerShell()
    shell.consumer("a")
    shell.hold()
    joins = [
        shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, m).request())
        for m in ("b", "c")
    ]
    assert shell.held is not None
    lost, kept = shell.held
    shell.held = None
    shell.complete(lost, ErrorCode.NOT_ENOUGH_REPLICAS)
    shell.complete(kept)
    told = [shell.replies[token].error for token in joins]
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    again = FakeConsumer(shell, "b")
    assert again.beat().error is ErrorCode.NONE
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    assert facts(replayed.consumer) == facts(shell.consumers)


def test_an_earlier_append_that_succeeds_does_not_hide_a_later_one_that_failed() -> None:
    shell = ConsumerShell()
    shell.consumer("a")
    shell.hold()
    for member_id in ("b", "c"):
        shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, member_id).request())
    assert shell.held is not None
    kept, lost = shell.held
    shell.held = None
    shell.complete(lost, ErrorCode.NOT_ENOUGH_REPLICAS)
    shell.complete(kept)
    settle([FakeConsumer(shell, "c")], 2)
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    assert facts(replayed.consumer) == facts(shell.consumers)


def test_a_group_that_is_deleted_leaves_nothing_of_what_could_not_be_appended() -> None:
    shell = ConsumerShell()
    settle([shell.consumer("a"), shell.consumer("b")])
    shell.hold()
    shell.beat("a", -1)
    shell.beat("b", -1)
    assert shell.held is not None
    lost, kept = shell.held
    shell.held = None
    shell.complete(lost, ErrorCode.NOT_ENOUGH_REPLICAS)
    shell.complete(kept)
    shell.expire_offsets()
    assert shell.replayed()._core.registry.find("g") is None


def test_every_kind_of_step_can_be_undone() -> None:
    """Also one that puts a static member in the place of another."""
    shell = ConsumerShell()
    shell.topics.create("tt", 2)
    first = shell.consumer("a1", instance_id="ia")
    second = shell.consumer("b", topics=None, regex="t.*")
    settle([first, second])
    first.leave(-2)
    before = facts(shell.consumers)
    shell.append_error = ErrorCode.RECORD_LIST_TOO_LARGE
    replacing = FakeConsumer(shell, "a2", instance_id="ia", topics=("tt",), assignor="range")
    for step in (replacing.beat, second.leave):
        assert step().error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert facts(shell.consumers) == before
    shell.append_error = ErrorCode.NONE
    assert replacing.beat().error is ErrorCode.NONE


def test_a_member_whose_removal_is_undone_has_a_session_again() -> None:
    shell = ConsumerShell()
    shell.consumer("a")
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.advance(SESSION_MS)
    assert [*shell.consumers.members] == ["a"]
    shell.append_error = ErrorCode.NONE
    shell.advance(SESSION_MS)
    assert [*shell.consumers.members] == []


def test_a_member_whose_joining_is_undone_is_not_removed_later() -> None:
    shell = ConsumerShell()
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    FakeConsumer(shell, "a").beat()
    shell.append_error = ErrorCode.NONE
    shell.advance(SESSION_MS)
    assert shell.log == []


# Appends that were not replicated in time: the log has them, but a new leader may not.


@pytest.fixture
def late() -> ConsumerShell:
    """With a member that has joined, which it does not know."""
    shell = ConsumerShell()
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    assert FakeConsumer(shell, "a").beat().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    return shell


def found_in_log(shell: ConsumerShell) -> tuple[object, ...]:
    """The facts of the group that the next coordinator finds."""
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    return facts(replayed.consumer)


def test_nothing_is_answered_that_builds_on_what_is_not_replicated(late: ConsumerShell) -> None:
    late.hold()
    tokens = [late.beat("a", 1), late.beat("a", 1)]
    assert not any(token in late.replies for token in tokens)
    assert len(late.appends) == 2  # they wait for one
    late.fail_over(kept=0)
    assert late.refused("a", 1) is ErrorCode.GROUP_ID_NOT_FOUND


def test_what_is_not_replicated_is_written_again(late: ConsumerShell) -> None:
    before = len(late.appends)
    assert late.refused("a", 1) is ErrorCode.NONE
    assert late.replicated == len(late.log)
    assert found_in_log(late) == facts(late.consumers)
    assert late.refused("a", 1) is ErrorCode.NONE
    assert len(late.appends) == before + 1


def test_it_is_written_again_and_again(late: ConsumerShell) -> None:
    for error in (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # in vain: the first append is still not replicated
        ErrorCode.REQUEST_TIMED_OUT,
    ):
        late.append_error = error
        assert late.refused("a", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    late.append_error = ErrorCode.NONE
    assert late.refused("a", 1) is ErrorCode.NONE
    assert found_in_log(late) == facts(late.consumers)


class ShellWithSmallBatches(ConsumerShell):
    """Refuses batches of more than ten records."""

    def complete(self, append: Append, error: ErrorCode = ErrorCode.NONE) -> None:
        is_too_large = len(append.records) > 10
        super().complete(append, ErrorCode.MESSAGE_TOO_LARGE if is_too_large else error)


def test_a_large_group_is_served_again_after_many_writes_were_not_replicated_in_time() -> None:
    """Its records together are larger than a batch may be."""
    shell = ShellWithSmallBatches()
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    for number in range(5):
        joining = FakeConsumer(shell, f"m{number}", topics=("missing",))
        assert joining.beat().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    assert shell.refused("m0", 1) is ErrorCode.NONE
    assert shell.replicated == len(shell.log)
    assert found_in_log(shell) == facts(shell.consumers)


def test_a_later_append_that_is_replicated_says_that_earlier_ones_are_too() -> None:
    shell = ConsumerShell()
    shell.hold()
    for member_id in ("a", "b"):
        joining = FakeConsumer(shell, member_id, topics=("missing",))
        shell.call(shell.coordinator.consumer_heartbeat, joining.request())
    assert shell.held is not None
    first, second = shell.held
    shell.held = []
    shell.complete(first, ErrorCode.REQUEST_TIMED_OUT)
    shell.complete(second)
    assert shell.refused("b", 2) is ErrorCode.NONE
    assert shell.held == []


def test_a_later_append_does_not_stand_for_one_that_failed() -> None:
    shell = ConsumerShell()
    shell.hold()
    tokens = [
        shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, m).request())
        for m in ("a", "b", "c")
    ]
    assert shell.held is not None
    errors = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE)
    for append, error in zip(shell.held, errors, strict=True):
        shell.complete(append, error)
    assert {shell.replies[token].error for token in tokens} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    shell.held = None
    assert shell.refused("c", 3) is ErrorCode.NONE
    assert found_in_log(shell) == facts(shell.consumers)


def test_records_are_written_again_as_they_are_now() -> None:
    """A change that was appended after them, and is not replicated yet, is not undone."""
    shell = ConsumerShell()
    a = shell.consumer("a")
    shell.hold()
    for member_id in ("b", "c"):
        shell.call(shell.coordinator.consumer_heartbeat, FakeConsumer(shell, member_id).request())
    assert shell.held is not None
    first, second = shell.held
    shell.held = []
    shell.complete(first, ErrorCode.REQUEST_TIMED_OUT)
    told = shell.call(shell.coordinator.consumer_heartbeat, a.request())
    shell.complete(second)
    assert told not in shell.replies
    shell.release()
    assert shell.replies[told].error is ErrorCode.NONE
    assert found_in_log(shell) == facts(shell.consumers)


def test_too_few_replicas_after_the_append_do_not_take_it_back() -> None:
    shell = ConsumerShell()
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert FakeConsumer(shell, "a").beat().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.refused("a", 1) is ErrorCode.NONE
    assert len(shell.appends) == 1


def test_share_groups_write_again_too() -> None:
    shell = ShareShell()
    a = shell.member("a")
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    shell.begin()
    shell.append_error = ErrorCode.NONE
    a.beat()
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    b = shell.member("b")
    shell.append_error = ErrorCode.NONE
    assert b.beat(shell.shares.epoch).error is ErrorCode.NONE
    before = (shell.shares.states, *facts(shell.shares)[:3])
    shell.fail_over(kept=shell.replicated)
    assert (shell.shares.states, *facts(shell.shares)[:3]) == before


@pytest.fixture
def doubtful() -> ShareShell:
    """A share group, whose log's end not every new leader has, and which was loaded from it."""
    shell = ShareShell()
    a = shell.member("a")
    shell.begin()
    a.beat()
    assert a.epoch == 2
    shell.fail_over()
    a.beat()  # the names of topics are not in the log
    shell.coordinator.loaded_is_unreplicated(0)
    shell.hold()
    return shell


def test_what_was_loaded_is_waited_for_before_anybody_is_told_of_it(doubtful: ShareShell) -> None:
    known = facts(doubtful.shares)
    heartbeat = ShareHeartbeat("g", "a", 2, client_id="c")
    token = doubtful.call(doubtful.coordinator.share_heartbeat, heartbeat)
    assert token not in doubtful.replies
    doubtful.release()
    assert doubtful.replies[token].error is ErrorCode.NONE
    assert facts(doubtful.shares) == known
    doubtful.fail_over(kept=doubtful.replicated)
    assert facts(doubtful.shares)[:3] == known[:3]


@pytest.mark.parametrize(("leader_epoch", "is_told"), [(5, False), (6, True)])
def test_what_was_loaded_is_told_when_it_is_replicated(
    doubtful: ShareShell, leader_epoch: int, is_told: bool
) -> None:
    doubtful.coordinator.loaded_is_replicated(0, leader_epoch)
    doubtful.coordinator.loaded_is_replicated(1, leader_epoch)  # is led no more
    doubtful.coordinator.loaded_is_unreplicated(1)
    heartbeat = ShareHeartbeat("g", "a", 2, client_id="c")
    token = doubtful.call(doubtful.coordinator.share_heartbeat, heartbeat)
    assert (token in doubtful.replies) == is_told
