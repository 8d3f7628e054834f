"""The four strategies, as tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkapy.common.cluster_state import RECOVERED, RECOVERING, LeaderAndIsr
from kafkapy.controller.election import (
    Election,
    elect_controlled_shutdown,
    elect_offline,
    elect_preferred,
    elect_reassign,
)

ASSIGNED = (1, 2, 3)


def state(isr: tuple[int, ...], leader: int = 1) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 5, isr, 9, 2)


def online(*brokers: int) -> Callable[[int], bool]:
    return lambda broker: broker in brokers


def shown(election: Election | None) -> tuple[object, ...] | None:
    if election is None:
        return None
    new, recipients = election
    assert (new.leader_epoch, new.partition_epoch, new.controller_epoch) == (6, 9, 2)
    return new.leader, new.isr, recipients


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "expected"),
    [
        ((1, 2, 3), (1, 2, 3), False, (1, (1, 2, 3), (1, 2, 3))),
        ((1, 2, 3), (2, 3), False, (2, (2, 3), (2, 3))),
        ((3, 2), (2, 3), False, (2, (3, 2), (2, 3))),
        ((3,), (2, 3), False, (3, (3,), (2, 3))),
        ((1,), (2, 3), False, None),
        ((1,), (), True, None),
        ((1,), (2, 3), True, (2, (2,), (2, 3))),
        ((3,), (2, 3), True, (3, (3,), (2, 3))),
    ],
)
def test_offline(
    isr: tuple[int, ...], live: tuple[int, ...], unclean: bool, expected: object
) -> None:
    assert shown(elect_offline(ASSIGNED, state(isr), online(*live), unclean)) == expected


def test_only_an_unclean_leader_recovers() -> None:
    clean = elect_offline(ASSIGNED, state((2,)), online(2), True)
    unclean = elect_offline(ASSIGNED, state((1,)), online(2), True)
    assert clean is not None
    assert unclean is not None
    assert clean.state.leader_recovery_state == RECOVERED
    assert unclean.state.leader_recovery_state == RECOVERING


@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        ((1, 2, 4), (1, 2, 4), (4, (2, 4), (4, 2))),
        ((1, 2, 4), (1, 2), (2, (2, 4), (2,))),
        ((1,), (1, 2, 4), None),
    ],
)
def test_reassign(isr: tuple[int, ...], live: tuple[int, ...], expected: object) -> None:
    assert shown(elect_reassign((4, 2), state(isr), online(*live))) == expected


@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        ((1, 2), (1, 2, 3), (1, (1, 2), (1, 2, 3))),
        ((2, 3), (1, 2, 3), None),
        ((1, 2), (2, 3), None),
    ],
)
def test_preferred(isr: tuple[int, ...], live: tuple[int, ...], expected: object) -> None:
    assert shown(elect_preferred(ASSIGNED, state(isr, 2), online(*live))) == expected


@pytest.mark.parametrize(
    ("isr", "stopping", "expected"),
    [
        ((1, 2, 3), {1}, (2, (2, 3), (1, 2, 3))),
        ((1, 2, 3), {1, 2}, (3, (3,), (1, 2, 3))),
        ((1,), {1}, None),
        ((1, 2, 3), {1, 2, 3}, None),
    ],
)
def test_controlled_shutdown(isr: tuple[int, ...], stopping: set[int], expected: object) -> None:
    found = elect_controlled_shutdown(ASSIGNED, state(isr), online(1, 2, 3), stopping)
    assert shown(found) == expected
