"""Parked requests end at their deadline with one timer, and no timer when nothing is parked."""

from __future__ import annotations

import pytest

from kafkapy.replication.purgatory import DelayedOperation
from kafkapy.server.replicas.timed_purgatory import TimedPurgatory
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.server_parts import WALL_AHEAD_MS, FakeTimers


class Parked(DelayedOperation):
    """Ready when told; remembers whether it ended."""

    __slots__ = ("has_ended", "is_ready")

    def __init__(self, deadline_ms: int, is_ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = is_ready
        self.has_ended = False

    def ready(self) -> bool:
        return self.is_ready

    def on_complete(self) -> None:
        self.has_ended = True


class Shop:
    """A purgatory with its clock and its timers."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000, WALL_AHEAD_MS)
        self.timers = FakeTimers()
        self.purgatory = TimedPurgatory("Produce", self.clock, self.timers.call_later)

    def park(self, in_ms: int, is_ready: bool = False) -> Parked:
        operation = Parked(self.clock.now_ms + in_ms, is_ready)
        assert self.purgatory.try_complete_else_watch(operation, ["key"]) == is_ready
        return operation


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_what_is_ready_needs_no_timer(shop: Shop) -> None:
    assert shop.park(100, is_ready=True).has_ended
    assert shop.timers.delays_s == []


def test_one_timer_waits_for_the_earliest_deadline(shop: Shop) -> None:
    first, second = shop.park(100), shop.park(200)
    assert shop.timers.delays_s == [0.1]
    earliest = shop.park(50)
    assert shop.timers.delays_s == [0.05]
    shop.clock.now_ms += 50
    shop.timers.fire()
    assert (earliest.has_ended, first.has_ended) == (True, False)
    assert shop.timers.delays_s == [0.05]
    shop.clock.now_ms += 150
    shop.timers.fire()
    assert (first.has_ended, second.has_ended) == (True, True)
    assert shop.timers.delays_s == []


def test_a_timer_that_goes_off_early_is_set_again(shop: Shop) -> None:
    late = shop.park(100)
    shop.clock.now_ms += 99
    shop.timers.fire()
    assert not late.has_ended
    assert shop.timers.delays_s == [0.001]


def test_a_deadline_that_has_passed_is_due_now(shop: Shop) -> None:
    shop.park(-5)
    assert shop.timers.delays_s == [0]


def test_an_answer_that_came_first_leaves_nothing_to_expire(shop: Shop) -> None:
    operation = shop.park(100)
    operation.is_ready = True
    shop.purgatory.check("key")
    shop.clock.now_ms += 100
    shop.timers.fire()
    assert operation.has_ended
    assert shop.timers.delays_s == []


def test_stopping_answers_all_and_stops_the_timer(shop: Shop) -> None:
    operation = shop.park(100)
    shop.purgatory.complete_all()
    assert operation.has_ended
    assert shop.timers.delays_s == []
