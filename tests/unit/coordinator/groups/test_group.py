"""One group: its transitions, its members, its choice of protocol."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    VALID_PREVIOUS_STATES,
    Group,
    GroupState,
    IllegalTransition,
)
from kafkapy.coordinator.groups.member import Member
from kafkapy.coordinator.groups.record_codec import GroupValue, MemberValue
from kafkapy.coordinator.outbox import Ticket
from tests.harness.cores.group_shell import SUBSCRIBED_T

# From -> to, as Kafka's GroupState says which states may come before.
LEGAL = {
    ("Empty", "PreparingRebalance"),
    ("Empty", "Dead"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("PreparingRebalance", "Dead"),
    ("CompletingRebalance", "Stable"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("CompletingRebalance", "Dead"),
    ("Stable", "PreparingRebalance"),
    ("Stable", "Dead"),
    ("Dead", "Dead"),
}
ROOM = [
    (EMPTY, "stranger", 0, True),
    (PREPARING_REBALANCE, "a", 1, True),
    (PREPARING_REBALANCE, "b", 1, False),
    (PREPARING_REBALANCE, "b", 2, True),
    (PREPARING_REBALANCE, "stranger", 1, False),
    (STABLE, "b", 1, True),
    (STABLE, "stranger", 2, False),
    (STABLE, "stranger", 3, True),
    (COMPLETING_REBALANCE, "b", 1, True),
    (COMPLETING_REBALANCE, "stranger", 2, False),
]


def protocols(*names: str) -> Sequence[tuple[str, bytes]]:
    return [(name, b"metadata of " + name.encode()) for name in names]


def member(member_id: str, *names: str, instance_id: str | None = None) -> Member:
    supported = protocols(*(names or ("range",)))
    return Member(member_id, instance_id, "client", "/host", 60_000, 10_000, supported)


def group_of(*members: Member) -> Group:
    group = Group("g", 0, 0)
    for one in members:
        group.add(one, "consumer")
    return group


@pytest.mark.parametrize("before", list(GroupState))
@pytest.mark.parametrize("after", list(GroupState))
def test_every_pair_of_states(before: GroupState, after: GroupState) -> None:
    group = Group("g", 0, 0)
    group.state = before
    if (before, after) in LEGAL:
        group.transition_to(after, 77)
        assert (group.state, group.state_timestamp_ms) == (after, 77)
    else:
        with pytest.raises(IllegalTransition, match=f"Instead it is in {before} state"):
            group.transition_to(after, 77)
        assert group.state is before


def test_the_table_is_of_all_states() -> None:
    assert set(VALID_PREVIOUS_STATES) == set(GroupState)


@pytest.mark.parametrize("state", list(GroupState))
def test_only_states_before_a_rebalance_can_rebalance(state: GroupState) -> None:
    group = Group("g", 0, 0)
    group.state = state
    assert group.can_rebalance == (state in (EMPTY, STABLE, COMPLETING_REBALANCE))


def test_the_first_member_leads_and_sets_the_type() -> None:
    group = group_of(member("a"), member("b"))
    assert (group.leader_id, group.protocol_type) == ("a", "consumer")
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("b")
    assert group.leader_id is None


def test_a_member_that_is_gone_is_not_waited_for() -> None:
    group = group_of(member("a"), member("b"))
    group.state = PREPARING_REBALANCE
    group.next_generation(0)
    group.remove("b")
    assert group.pending_sync == {"a"}


def test_a_pending_id_becomes_a_member() -> None:
    group = Group("g", 0, 0)
    group.pending_members.add("a")
    assert not group.all_joined
    group.add(member("a"), "consumer")
    assert not group.pending_members


def test_all_have_joined_when_nobody_is_missing() -> None:
    group = group_of(member("a"), member("b"))
    group.joining["a"] = Ticket(1)
    assert not group.all_joined
    group.joining["b"] = Ticket(2)
    assert group.all_joined
    group.pending_members.add("c")
    assert not group.all_joined


def test_who_waits_cannot_be_removed() -> None:
    group = group_of(member("a"))
    group.joining["a"] = Ticket(1)
    with pytest.raises(AssertionError, match="waits to join"):
        group.remove("a")


def test_the_longest_rebalance_timeout_counts() -> None:
    slow = member("b")
    slow.rebalance_timeout_ms = 90_000
    assert group_of(member("a"), slow).rebalance_timeout_ms == 90_000
    assert group_of().rebalance_timeout_ms == 0


def test_an_empty_group_takes_anyone_who_speaks() -> None:
    group = Group("g", 0, 0)
    assert group.supports("anything", protocols("x"))
    assert not group.supports("", protocols("x"))
    assert not group.supports("anything", [])


def test_a_member_needs_a_protocol_that_all_have() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "sticky", "other"))
    group.state = STABLE
    assert group.supports("consumer", protocols("new", "sticky"))
    assert not group.supports("consumer", protocols("range", "other"))
    assert not group.supports("connect", protocols("sticky"))
    group.remove("b")
    assert group.supports("consumer", protocols("range"))


def test_the_protocol_with_most_votes_among_those_of_all() -> None:
    group = group_of(
        member("a", "x", "range", "sticky"),
        member("b", "sticky", "range"),
        member("c", "sticky", "range"),
    )
    assert group.select_protocol() == "sticky"
    group.update(group.members["c"], protocols("range", "sticky"), 1, 2)
    assert group.select_protocol() == "range"
    assert (group.members["c"].rebalance_timeout_ms, group.members["c"].session_timeout_ms) == (
        1,
        2,
    )


def test_a_protocol_named_twice_is_still_one() -> None:
    assert group_of(member("a", "range", "range")).select_protocol() == "range"


def test_the_leader_stays_if_it_rejoined() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert not group.elect_joined_leader()
    group.joining["c"] = Ticket(1)
    group.joining["a"] = Ticket(2)
    assert group.elect_joined_leader()
    assert group.leader_id == "a"
    del group.joining["a"]
    assert group.elect_joined_leader()
    assert group.leader_id == "c"


def test_a_generation_with_members() -> None:
    group = group_of(member("a"), member("b"))
    group.state = PREPARING_REBALANCE
    group.next_generation(5)
    assert (group.generation_id, group.state, group.protocol_name) == (
        1,
        "CompletingRebalance",
        "range",
    )
    assert group.pending_sync == {"a", "b"}
    assert [m.member_id for m in group.joined_members("a")] == ["a", "b"]
    assert group.joined_members("a")[0].metadata == b"metadata of range"
    assert group.joined_members("b") == []


def test_a_generation_without_members() -> None:
    group = Group("g", 0, 0)
    group.state = PREPARING_REBALANCE
    group.protocol_name = "range"
    group.next_generation(5)
    assert (group.generation_id, group.state, group.protocol_name) == (1, EMPTY, None)


def test_subscribed_topics_are_of_the_generation() -> None:
    subscriber = Member("a", None, "c", "/h", 1, 1, [("range", SUBSCRIBED_T)])
    group = group_of(subscriber)
    group.state = PREPARING_REBALANCE
    group.next_generation(5)
    assert group.subscribed_topics == {"t"}
    group.update(subscriber, [("range", b"")], 1, 1)
    assert group.subscribed_topics == {"t"}
    group.state = PREPARING_REBALANCE
    group.next_generation(6)
    assert group.subscribed_topics is None


def test_other_protocol_types_have_no_topics() -> None:
    group = Group("g", 0, 0)
    group.add(Member("a", None, "c", "/h", 1, 1, [("range", SUBSCRIBED_T)]), "connect")
    group.state = PREPARING_REBALANCE
    group.next_generation(5)
    assert group.subscribed_topics is None


def test_a_static_member_is_replaced_in_its_place() -> None:
    one = member("a", instance_id="i")
    group = group_of(one, member("b"))
    group.pending_sync = {"a"}
    one.assignment = b"kept"
    group.replace_static_member(one, "a2")
    assert set(group.members) == {"a2", "b"}
    assert group.members["a2"].assignment == b"kept"
    assert (group.leader_id, group.static_members, group.pending_sync) == (
        "a2",
        {"i": "a2"},
        {"a2"},
    )
    group.remove("a2")
    assert group.static_members == {}


def test_members_are_checked_by_id_and_instance() -> None:
    group = group_of(member("a", instance_id="i"), member("b"))
    assert group.check_member("a", "i") is ErrorCode.NONE
    assert group.check_member("b", None) is ErrorCode.NONE
    assert group.check_member("a", None) is ErrorCode.NONE
    assert group.check_member("b", "i") is ErrorCode.FENCED_INSTANCE_ID
    assert group.check_member("a", "other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_member("x", None) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("state", "member_id", "max_size", "expected"), ROOM)
def test_room(state: GroupState, member_id: str, max_size: int, expected: bool) -> None:
    """Of members a and b, a has rejoined."""
    group = group_of(member("a"), member("b"))
    group.joining["a"] = Ticket(1)
    group.state = state
    assert group.has_room_for(member_id, max_size) is expected


def test_a_restored_group_is_what_its_record_says() -> None:
    rows = [
        MemberValue("a", None, "c", "/h", 60_000, 10_000, SUBSCRIBED_T, b"1"),
        MemberValue("b", "i", "c", "/h", 70_000, 20_000, SUBSCRIBED_T, b"2"),
    ]
    value = GroupValue("consumer", 7, "range", "b", 123, rows)
    group = Group("g", 0, None)
    group.restore(value)
    assert (group.state, group.generation_id, group.leader_id) == (STABLE, 7, "b")
    assert (group.static_members, group.subscribed_topics) == ({"i": "b"}, {"t"})
    assert not any(m.is_new for m in group.members.values())
    assert group.value({m.member_id: m.assignment for m in group.members.values()}) == value


def test_a_restored_group_without_members_is_empty() -> None:
    group = Group("g", 0, None)
    group.restore(GroupValue("consumer", 7, None, None, 123, []))
    assert (group.state, group.protocol_type, group.state_timestamp_ms) == (EMPTY, "consumer", 123)
    assert not group.is_blank


def test_a_record_whose_leader_is_no_member_leaves_the_first() -> None:
    row = MemberValue("a", None, "c", "/h", 60_000, 10_000, b"", b"")
    group = Group("g", 0, None)
    group.restore(GroupValue("consumer", 7, "range", "gone", 123, [row]))
    assert group.leader_id == "a"


def test_dead_is_final() -> None:
    group = Group("g", 0, 0)
    group.transition_to(DEAD, 1)
    assert not group.can_rebalance
