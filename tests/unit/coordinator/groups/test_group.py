"""One group: its transitions, its size, its record."""

from __future__ import annotations

import pytest

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


def member(member_id: str) -> Member:
    return Member(member_id, None, "client", "/host", 60_000, 10_000, [("range", b"")])


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


def test_a_member_that_is_gone_is_not_waited_for() -> None:
    group = group_of(member("a"), member("b"))
    group.state = PREPARING_REBALANCE
    group.next_generation(0)
    group.remove("b")
    assert group.pending_sync == {"a"}


def test_who_waits_cannot_be_removed() -> None:
    group = group_of(member("a"))
    group.joining["a"] = Ticket(1)
    with pytest.raises(AssertionError, match="waits to join"):
        group.remove("a")


def test_other_protocol_types_have_no_topics() -> None:
    group = Group("g", 0, 0)
    group.add(Member("a", None, "c", "/h", 1, 1, [("range", SUBSCRIBED_T)]), "connect")
    group.state = PREPARING_REBALANCE
    group.next_generation(5)
    assert group.subscribed_topics is None


@pytest.mark.parametrize(("state", "member_id", "max_size", "expected"), ROOM)
def test_room(state: GroupState, member_id: str, max_size: int, expected: bool) -> None:
    """Of members a and b, a has rejoined."""
    group = group_of(member("a"), member("b"))
    group.joining["a"] = Ticket(1)
    group.state = state
    assert group.accepts_joining_member(member_id, max_size) is expected


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
