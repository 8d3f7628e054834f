"""Members of a share group: they share the partitions whose state has begun."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.messages import LeaveGroup, LeavingMember
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat
from tests.harness.cores.consumer_shell import SESSION_MS
from tests.harness.cores.share_shell import ShareShell

ALL = {("t", index) for index in range(4)}


@pytest.fixture
def shell() -> ShareShell:
    return ShareShell()


def test_partitions_are_assigned_when_their_state_has_begun(shell: ShareShell) -> None:
    a = shell.member("a")
    assert a.partitions == set()
    [request] = shell.coordinator._core.state_requests
    assert request.state_epoch == shell.shares.epoch
    a.beat()
    assert len(shell.coordinator._core.state_requests) == 1, "it is requested once"
    shell.begin()
    a.beat()
    assert a.partitions == ALL
    assert a.beat().assignment is None, "it is told once"


def test_a_state_that_cannot_begin_is_requested_again(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    a.beat()
    assert a.partitions == set()
    shell.begin()
    a.beat()
    assert a.partitions == ALL


def test_a_state_is_requested_when_the_log_has_it(shell: ShareShell) -> None:
    shell.hold()
    request = ShareHeartbeat("g", "a", 0, subscribed_names=["t"])
    shell.call(shell.coordinator.share_heartbeat, request)
    assert not shell.requests(), "this coordinator may have been replaced"
    shell.release()
    [wanted] = shell.requests()
    assert wanted.state_epoch == shell.shares.epoch


def test_a_coordinator_that_was_replaced_requests_no_state(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    shell.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert a.beat().error is ErrorCode.NOT_COORDINATOR
    assert not shell.requests()
    shell.append_error = ErrorCode.NONE
    assert a.beat().error is ErrorCode.NONE
    shell.begin()
    a.beat()
    assert a.partitions == ALL


def test_members_share_the_partitions(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin()
    a.beat()
    b = shell.member("b")
    assert len(b.partitions) == 2, "at once: nobody has to revoke anything"
    a.beat()
    assert a.partitions | b.partitions == ALL
    members = [a, b, *(shell.member(name) for name in ("c", "d", "e"))]
    for member in members:
        member.beat()
    shares = Counter(partition for member in members for partition in member.partitions)
    assert set(shares) == ALL
    assert all(member.partitions for member in members)


def test_a_member_that_leaves_or_is_silent_gives_its_share_away(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin()
    b = shell.member("b")
    assert b.beat(-1).error is ErrorCode.NONE
    a.beat()
    assert a.partitions == ALL
    shell.member("c")
    shell.advance(SESSION_MS - 1)
    a.beat()
    shell.advance(1)
    a.beat()
    assert a.partitions == ALL
    assert set(shell.shares.members) == {"a"}


def test_another_coordinator_goes_on_with_the_records(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin()
    a.beat()
    before = (shell.shares.epoch, shell.shares.target, shell.shares.states)
    shell.fail_over()
    assert (shell.shares.epoch, shell.shares.target, shell.shares.states) == before
    assert a.beat().error is ErrorCode.NONE
    assert shell.shares.epoch == before[0], "the topics are the same, by their hash"
    shell.topics.grow("t", 5)
    a.beat()
    shell.begin()
    a.beat()
    assert a.partitions == {*ALL, ("t", 4)}


def test_a_deleted_topic_is_forgotten(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin()
    a.beat()
    shell.topics.delete("t")
    a.beat()
    assert a.partitions == set()
    assert not shell.shares.has_states


def test_a_member_loses_a_topic_that_is_deleted_while_its_coordinator_moves(
    shell: ShareShell,
) -> None:
    a = shell.member("a")
    shell.begin()
    a.beat()
    shell.topics.delete("t")
    shell.fail_over()
    a.beat()
    assert a.partitions == set()


def test_refusals(shell: ShareShell) -> None:
    a = shell.member("a")
    shell.begin()
    a.beat()
    assert a.beat(a.epoch + 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.beat(a.epoch - 1).assignment is not None, "an answer was lost"
    a.epoch -= 1
    a.beat()
    shell.topics.grow("t", 5)
    a.beat()
    a.beat()
    assert a.beat(1).error is ErrorCode.FENCED_MEMBER_EPOCH
    for group, member, epoch, error in (
        ("g", "x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", "x", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("other", "x", 3, ErrorCode.GROUP_ID_NOT_FOUND),
        ("g", "", 0, ErrorCode.INVALID_REQUEST),
        ("g", "x", -2, ErrorCode.INVALID_REQUEST),
        ("g", "x", 0, ErrorCode.INVALID_REQUEST),
    ):
        request = ShareHeartbeat(group, member, epoch)
        assert shell.ask(shell.coordinator.share_heartbeat, request).error is error


def test_a_group_has_room_for_a_number_of_members() -> None:
    shell = ShareShell(GroupConfig(offsets_topic_num_partitions=1, group_share_max_size=1))
    shell.member("a")
    request = ShareHeartbeat("g", "b", 0, subscribed_names=["t"])
    result = shell.ask(shell.coordinator.share_heartbeat, request)
    assert result.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_groups_of_other_protocols(shell: ShareShell) -> None:
    shell.consumer("m")
    request = ShareHeartbeat("g", "a", 0, subscribed_names=["t"])
    result = shell.ask(shell.coordinator.share_heartbeat, request)
    assert result.error is ErrorCode.GROUP_ID_NOT_FOUND
    shell = ShareShell()
    a = shell.member("a")
    a.beat(-1)
    fields = {"rebalance_timeout_ms": 1, "subscribed_names": ["t"], "owned": {}}
    assert shell.refused("m", 0, **fields) is ErrorCode.GROUP_ID_NOT_FOUND
    assert shell.shares.state == "Empty"


def test_a_request_of_the_classic_protocol_does_not_remove_a_member(shell: ShareShell) -> None:
    shell.member("a")
    leave = LeaveGroup("g", [LeavingMember("a")])
    [(_, error)] = shell.ask(shell.coordinator.leave_group, leave).members
    assert error is ErrorCode.UNKNOWN_MEMBER_ID
    assert set(shell.shares.members) == {"a"}


def test_a_group_may_have_a_session_timeout_and_an_interval_of_its_own(shell: ShareShell) -> None:
    shell.coordinator.configure_group(
        "g", {"share.session.timeout.ms": 50_000, "share.heartbeat.interval.ms": 7000}
    )
    assert shell.member("a").beat().heartbeat_interval_ms == 7000
    assert shell.coordinator.next_deadline_ms() == shell.now_ms + 50_000


def test_topic_names_beyond_the_limit_are_refused(shell: ShareShell) -> None:
    names = ["n" * 7] * (2**20 // 8)
    for wanted, error in ((names, ErrorCode.NONE), ([*names, ""], ErrorCode.INVALID_REQUEST)):
        request = ShareHeartbeat("g", "a", 0, subscribed_names=wanted)
        assert shell.ask(shell.coordinator.share_heartbeat, request).error is error
