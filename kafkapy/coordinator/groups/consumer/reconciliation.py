"""Steps of a member from its current assignment to its target: revoke, then wait, then own.

    STABLE                 Has its epoch's assignment. For a newer target, see below.
    UNREVOKED_PARTITIONS   Keeps its epoch until a heartbeat confirms the revocation.
    UNRELEASED_PARTITIONS  Is in the target's epoch; gets partitions as others release them.

The same step computes the next state from every state. First, partitions that are not in the target
are revoked, in the old epoch. Then free partitions are assigned, in the target's epoch. So a
partition never has two members. Kafka: `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    TopicIdPartition,
    assignment_of,
    overlap,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.records import CurrentAssignment, MemberState


class Target(NamedTuple):
    """A member's target assignment, and its epoch."""

    epoch: int
    assignment: Assignment


def is_reconciled(current: CurrentAssignment, target_epoch: int) -> bool:
    """Whether the member has all partitions of its target."""
    return current.state is MemberState.STABLE and current.member_epoch == target_epoch


def reconcile(
    current: CurrentAssignment,
    target: Target,
    is_free: Callable[[TopicIdPartition], bool],
    owned: Assignment | None,
) -> CurrentAssignment:
    """The member's next state; `owned`: the partitions of its heartbeat, None without that field.

    `is_free`: no other member has the partition or must still revoke it.
    """
    if _MUST_WAIT[current.state](current, target, owned):
        return current
    return _next(current, target, is_free, owned)


def _has_target(current: CurrentAssignment, target: Target, owned: Assignment | None) -> bool:
    return current.member_epoch == target.epoch


def _has_not_revoked(current: CurrentAssignment, target: Target, owned: Assignment | None) -> bool:
    return owned is None or overlap(owned, current.revoking)


def _never(current: CurrentAssignment, target: Target, owned: Assignment | None) -> bool:
    return False


_MUST_WAIT: Final[
    Mapping[MemberState, Callable[[CurrentAssignment, Target, Assignment | None], bool]]
] = {
    MemberState.STABLE: _has_target,
    MemberState.UNREVOKED_PARTITIONS: _has_not_revoked,
    MemberState.UNRELEASED_PARTITIONS: _never,
}
"""The condition under which a member stays in a state, by state."""


def _next(
    current: CurrentAssignment,
    target: Target,
    is_free: Callable[[TopicIdPartition], bool],
    owned: Assignment | None,
) -> CurrentAssignment:
    wanted = set(partitions_of(target.assignment))
    assigned = set(partitions_of(current.assigned))
    kept, revoking = assigned & wanted, assignment_of(assigned - wanted)
    epochs = {partition: current.assignment_epoch(partition) for partition in assigned}
    if revoking and (owned is None or overlap(owned, revoking)):
        return CurrentAssignment(
            current.member_epoch,
            current.member_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            assignment_of(kept),
            revoking,
            epochs,
        )
    newly_assigned = {partition for partition in wanted - kept if is_free(partition)}
    is_complete = kept | newly_assigned == wanted
    return CurrentAssignment(
        target.epoch,
        current.member_epoch,
        MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        assignment_of(kept | newly_assigned),
        EMPTY_ASSIGNMENT,
        {p: epochs.get(p, target.epoch) for p in kept | newly_assigned},
    )
