"""Share partitions of a group, as administrators alter and delete them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import DeleteGroups, ListGroups
from kafkapy.coordinator.groups.share.messages import (
    AlterShareOffsets,
    DeleteShareOffsets,
    ListShareStates,
    ShareStatesDeleted,
    StateRequest,
)
from tests.harness.cores.consumer_shell import topic_id
from tests.harness.cores.group_shell import replay
from tests.harness.cores.share_shell import ShareShell

T = topic_id(1)


@pytest.fixture
def shell() -> ShareShell:
    """With an empty group that has share partitions."""
    shell = ShareShell()
    a = shell.member("a")
    shell.begin()
    a.beat()
    a.beat(-1)
    return shell


def known(shell: ShareShell) -> object:
    return shell.ask(shell.coordinator.list_share_states, ListShareStates("g")).partitions


def test_altered_partitions_begin_in_a_new_epoch(shell: ShareShell) -> None:
    epoch = shell.shares.epoch
    request = AlterShareOffsets("g", {T: [1]})
    result = shell.ask(shell.coordinator.alter_share_offsets, request)
    assert (result.error, result.state_epoch) == (ErrorCode.NONE, epoch + 1)
    assert shell.shares.state == "Empty"
    a = shell.member("a")
    result = shell.ask(shell.coordinator.alter_share_offsets, request)
    assert result.error is ErrorCode.NON_EMPTY_GROUP
    assert a.partitions


def altered(shell: ShareShell, group_id: str) -> StateRequest:
    """Alter a partition; the request for the share coordinator, which the log has."""
    request = AlterShareOffsets(group_id, {T: [1]})
    result = shell.ask(shell.coordinator.alter_share_offsets, request)
    return StateRequest(group_id, result.state_epoch, result.partitions)


def test_an_altered_group_may_be_new(shell: ShareShell) -> None:
    done = altered(shell, "new")
    result = shell.ask(shell.coordinator.share_states_altered, done)
    assert result.error is ErrorCode.NONE
    shell.fail_over()
    listed = shell.ask(shell.coordinator.list_share_states, ListShareStates("new"))
    assert listed.partitions == {T: frozenset({1})}


def test_altered_partitions_are_known_when_the_log_has_them(shell: ShareShell) -> None:
    done = altered(shell, "new")
    shell.hold()
    token = shell.call(shell.coordinator.share_states_altered, done)
    assert token not in shell.replies
    shell.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert shell.replies[token].error is ErrorCode.NOT_COORDINATOR


def test_a_member_that_came_meanwhile_begins_altered_partitions_itself() -> None:
    shell = ShareShell()
    done = altered(shell, "g")
    shell.member("a")
    [own] = shell.requests()
    assert own.state_epoch > done.state_epoch
    result = shell.ask(shell.coordinator.share_states_altered, done)
    assert result.error is ErrorCode.NON_EMPTY_GROUP


def test_a_member_that_came_meanwhile_leaves_known_partitions_alone(shell: ShareShell) -> None:
    done = altered(shell, "g")
    shell.member("a")
    assert not shell.requests()
    result = shell.ask(shell.coordinator.share_states_altered, done)
    assert result.error is ErrorCode.NONE


def test_a_group_is_deleted_after_its_states(shell: ShareShell) -> None:
    delete = DeleteGroups(["g"])
    errors = shell.ask(shell.coordinator.delete_groups, delete).errors
    assert errors == {"g": ErrorCode.NON_EMPTY_GROUP}
    marked = shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    assert marked.partitions == {T: frozenset(range(4))}
    assert known(shell) == {}
    shell.fail_over()  # the states are deleted again
    marked = shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    assert marked.partitions == {T: frozenset(range(4))}
    shell.ask(shell.coordinator.share_states_deleted, ShareStatesDeleted("g", [T]))
    errors = shell.ask(shell.coordinator.delete_groups, delete).errors
    assert errors == {"g": ErrorCode.NONE}
    shell.fail_over()
    assert not shell.group_is_known()


def test_a_group_is_deleted_after_its_topics(shell: ShareShell) -> None:
    shell.topics.delete("t")
    marked = shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    assert marked.error is ErrorCode.NONE
    assert marked.partitions == {}, "no share coordinator would delete them"
    shell.fail_over()
    errors = shell.ask(shell.coordinator.delete_groups, DeleteGroups(["g"])).errors
    assert errors == {"g": ErrorCode.NONE}


def test_nothing_is_deleted_before_topics_are_known(shell: ShareShell) -> None:
    shell.topics.is_known = False
    marked = shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    assert marked.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shell.topics.is_known = True
    assert known(shell) == {T: frozenset(range(4))}


def test_deleted_partitions_begin_again_with_the_next_member(shell: ShareShell) -> None:
    shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", [T]))
    a = shell.member("a")
    assert not shell.requests(), "the states are being deleted"
    shell.ask(shell.coordinator.share_states_deleted, ShareStatesDeleted("g", [T]))
    a.beat()
    shell.begin()
    a.beat()
    assert len(a.partitions) == 4


@pytest.mark.parametrize("end", ["failed", "crashed", "not stored"])
def test_partitions_whose_deletion_did_not_end_begin_again_too(shell: ShareShell, end: str) -> None:
    """Nothing told their members apart from those of a group without records."""
    before = shell.shares.epoch
    delete = DeleteShareOffsets("g", [T])
    if end == "not stored":
        shell.hold()
        token = shell.call(shell.coordinator.delete_share_offsets, delete)
        shell.release(ErrorCode.REQUEST_TIMED_OUT)
        assert shell.replies[token].error is not ErrorCode.NONE
    else:
        shell.ask(shell.coordinator.delete_share_offsets, delete)
    a = shell.member("a")
    assert bool(shell.requests()) is (end == "not stored")
    if end == "failed":
        ended = ShareStatesDeleted("g", [], [T])
        assert shell.ask(shell.coordinator.share_states_deleted, ended).error is ErrorCode.NONE
    if end != "not stored":
        if end == "crashed":
            shell.fail_over()
        a.beat()
        [request] = shell.requests()
        assert request.state_epoch > before, "what the share coordinator may have is begun anew"
        initialized = shell.coordinator.share_states_initialized
        shell.perform(initialized(shell.now_ms, request, ErrorCode.NONE))
        a.beat()
        assert len(a.partitions) == 4
    assert not shell.shares.states.deleting


def test_nothing_is_deleted_while_states_may_begin(shell: ShareShell) -> None:
    shell.topics.grow("t", 5)
    a = shell.member("a")
    [request] = shell.requests()
    a.beat(-1)
    delete = DeleteShareOffsets("g", None)
    marked = shell.ask(shell.coordinator.delete_share_offsets, delete)
    assert marked.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    initialized = shell.coordinator.share_states_initialized
    shell.perform(initialized(shell.now_ms, request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    marked = shell.ask(shell.coordinator.delete_share_offsets, delete)
    assert marked.partitions == {T: frozenset(range(5))}


def test_deleted_partitions_are_not_begun_by_what_was_requested_before(shell: ShareShell) -> None:
    shell.topics.grow("t", 5)
    a = shell.member("a")
    [request] = shell.requests()
    a.beat(-1)
    shell.fail_over()  # the request is still on its way
    shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    initialized = shell.coordinator.share_states_initialized
    shell.perform(initialized(shell.now_ms, request, ErrorCode.NONE))
    shell.ask(shell.coordinator.share_states_deleted, ShareStatesDeleted("g", [T]))
    assert known(shell) == {}, "the share coordinator has no state of them"
    a.epoch = 0
    a.beat()
    shell.begin()
    a.beat()
    assert len(a.partitions) == 5


def test_partitions_that_were_deleted_meanwhile_are_not_altered(shell: ShareShell) -> None:
    done = altered(shell, "g")
    shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    result = shell.ask(shell.coordinator.share_states_altered, done)
    assert result.error is ErrorCode.REBALANCE_IN_PROGRESS
    shell.ask(shell.coordinator.share_states_deleted, ShareStatesDeleted("g", [T]))
    assert known(shell) == {}


@pytest.mark.parametrize("has_begun", [False, True])
def test_what_a_member_has_begun_anew_is_not_altered(has_begun: bool) -> None:
    shell = ShareShell()
    done = altered(shell, "g")
    a = shell.member("a")
    [own] = shell.requests()
    assert own.state_epoch > done.state_epoch
    initialized = shell.coordinator.share_states_initialized
    if has_begun:
        shell.perform(initialized(shell.now_ms, own, ErrorCode.NONE))
    a.beat(-1)
    result = shell.ask(shell.coordinator.share_states_altered, done)
    assert result.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_unknown_groups(shell: ShareShell) -> None:
    for method, request in (
        (shell.coordinator.list_share_states, ListShareStates("x")),
        (shell.coordinator.delete_share_offsets, DeleteShareOffsets("x", None)),
        (shell.coordinator.share_states_deleted, ShareStatesDeleted("x", [T])),
        (shell.coordinator.share_states_altered, StateRequest("x", 1, {T: frozenset({1})})),
    ):
        assert shell.ask(method, request).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_is_listed_and_does_not_expire(shell: ShareShell) -> None:
    shell.expire_offsets(10**15)
    [[row]] = shell.ask(shell.coordinator.list_groups, ListGroups(types_filter=["Share"])).groups
    assert row == ("g", "share", "Empty", "share")


def test_what_has_begun_is_not_noted_during_a_load(shell: ShareShell) -> None:
    """The group is as the record says that the load has come to: written at the end of the log, it
    would undo the later ones, and what was consumed of others would be forgotten."""
    shell.topics.create("u", 1)
    shell.topics.grow("t", 5)
    shell.member("a", "t")
    [late] = shell.requests()
    shell.member("b", "u")
    so_far = len(shell.log)
    shell.begin()
    before = known(shell)
    assert len(before) == 2
    index, _ = shell.log[-1]
    loading = shell.coordinator = shell.new_coordinator()
    loading.start_loading(index, 6)
    for offset, (_, record) in enumerate(shell.log[:so_far]):
        replay(loading, index, offset, record)
    shell.perform(loading.share_states_initialized(shell.now_ms, late, ErrorCode.NONE))
    for offset, (_, record) in enumerate(shell.log[so_far:], so_far):
        replay(loading, index, offset, record)
    loading.finish_loading(index, shell.now_ms)
    assert known(shell) == before


def test_an_answer_from_before_a_load_does_not_overtake_a_later_request() -> None:
    """Members would consume what the later request begins anew, and skip what they had left."""
    shell = ShareShell()
    shell.member("a")
    [early] = shell.requests()
    shell.fail_over()  # the broker leads the group's partition again
    b = shell.member("b")
    [late] = shell.requests()
    assert late.state_epoch > early.state_epoch
    initialized = shell.coordinator.share_states_initialized
    shell.perform(initialized(shell.now_ms, early, ErrorCode.NONE))
    b.beat()
    assert not b.partitions
    assert not shell.requests(), "the later request is under way"
    shell.perform(initialized(shell.now_ms, late, ErrorCode.NONE))
    b.beat()
    assert b.partitions


def test_a_group_that_lost_the_end_of_its_log_goes_on_with_its_states() -> None:
    """Its members waited until its epoch had grown by itself, with a record for each heartbeat."""
    shell = ShareShell()
    a = shell.member("a")
    assert shell.shares.epoch == 1
    shell.begin(ErrorCode.FENCED_STATE_EPOCH, 7)
    shell.fail_over()
    a.beat()
    assert len(a.partitions) == 4
    assert not shell.requests()
    assert a.epoch == 7
    a.beat(-1)
    assert altered(shell, "g").state_epoch > 7, "otherwise no offsets could be altered"


def test_states_that_were_altered_meanwhile_are_initialized_again() -> None:
    """They are of the group's own epoch. The administrator's answer is still on its way."""
    shell = ShareShell()
    a = shell.member("a")
    [early] = shell.requests()
    a.beat(-1)
    late = altered(shell, "g")
    initialized = shell.coordinator.share_states_initialized
    fenced = initialized(shell.now_ms, early, ErrorCode.FENCED_STATE_EPOCH, late.state_epoch)
    shell.perform(fenced)
    assert known(shell) == {}
    result = shell.ask(shell.coordinator.share_states_altered, late)
    assert result.error is ErrorCode.NONE
    assert known(shell) == {T: frozenset({1})}


def test_the_names_of_deleted_topics_are_dropped(shell: ShareShell) -> None:
    """They stayed in memory until the next load."""
    other = shell.topics.create("u", 1)
    a = shell.member("a", "t", "u")
    shell.begin()
    assert shell.shares.states.names == {T: "t", other: "u"}
    shell.topics.delete("u")
    a.beat()
    assert shell.shares.states.names == {T: "t"}
    a.beat(-1)
    shell.ask(shell.coordinator.delete_share_offsets, DeleteShareOffsets("g", None))
    assert (shell.shares.states.names, shell.shares.states.deleting) == ({T: "t"}, {T})
    shell.ask(shell.coordinator.share_states_deleted, ShareStatesDeleted("g", [T]))
    assert shell.shares.states.names == {}
