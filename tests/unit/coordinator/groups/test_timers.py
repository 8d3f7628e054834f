"""Deadlines by name, against the plain model: a dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.groups.timers import TimerKey, TimerKind, Timers

KEYS = [TimerKey(TimerKind.SESSION, "g", name) for name in "abc"]
A, B, C = KEYS


def drain(timers: Timers, now_ms: int) -> list[TimerKey]:
    due = []
    while (key := timers.pop_due(now_ms)) is not None:
        due.append(key)
    return due


def test_deadlines_come_in_order() -> None:
    timers = Timers()
    assert timers.next_deadline_ms() is None
    for key, deadline_ms in ((A, 30), (B, 10), (C, 20)):
        timers.set(key, deadline_ms)
    assert timers.next_deadline_ms() == 10
    assert drain(timers, 9) == []
    assert drain(timers, 20) == [B, C]
    assert timers.next_deadline_ms() == 30


def test_a_deadline_moves_either_way() -> None:
    timers = Timers()
    timers.set(A, 10)
    timers.set(A, 50)
    timers.set(B, 40)
    timers.set(B, 20)
    assert (timers.next_deadline_ms(), timers.deadline_ms(A)) == (20, 50)
    assert drain(timers, 49) == [B]
    assert drain(timers, 50) == [A]
    assert drain(timers, 99) == []


def test_a_cancelled_deadline_does_not_come() -> None:
    timers = Timers()
    timers.set(A, 10)
    timers.cancel(A)
    timers.cancel(B)
    assert timers.next_deadline_ms() is None
    timers.set(A, 10)
    assert drain(timers, 10) == [A]


def test_heartbeats_do_not_grow_the_heap() -> None:
    timers = Timers()
    for now_ms in range(10_000):
        timers.set(A, now_ms + 100)
        assert drain(timers, now_ms) == []
    for _ in range(1_000):
        timers.cancel(A)
        timers.set(A, 20_000)
    assert len(timers._heap) <= 2


steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(KEYS), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("due"), st.just(A), st.integers(0, 20)),
    )
)


@given(steps)
def test_it_is_a_dictionary_with_an_order(steps: list[tuple[str, TimerKey, int]]) -> None:
    timers, model = Timers(), dict[TimerKey, int]()
    for verb, key, at_ms in steps:
        if verb == "set":
            timers.set(key, at_ms)
            model[key] = at_ms
        elif verb == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            due = sorted((t, k) for k, t in model.items() if t <= at_ms)
            assert drain(timers, at_ms) == [k for _, k in due]
            for _, k in due:
                del model[k]
        assert timers.next_deadline_ms() == min(model.values(), default=None)
