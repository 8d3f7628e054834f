"""A parked request completes exactly once: when it becomes ready, at its deadline, or never if
cancelled."""

from __future__ import annotations

import gc

from kafkapy.replication.purgatory import DelayedOperation, Purgatory


class Waiting(DelayedOperation):
    def __init__(self, deadline_ms: int = 100, ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = ready
        self.completions = 0

    def ready(self) -> bool:
        return self.is_ready

    def on_complete(self) -> None:
        self.completions += 1


def test_a_ready_operation_is_never_parked() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting(ready=True)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.completions == 1
    assert len(purgatory) == 0


def test_check_completes_what_became_ready_once_over_all_keys() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory.check("a")
    assert operation.completions == 0
    operation.is_ready = True
    purgatory.check("b")
    purgatory.check("a")
    purgatory.expire(1000)
    assert operation.completions == 1
    assert len(purgatory) == 0


class Failing(Waiting):
    """Finds a failure when it is asked, which completes all that wait for the same object."""

    def __init__(self, purgatory: Purgatory) -> None:
        super().__init__()
        self.purgatory = purgatory

    def ready(self) -> bool:
        if self.is_ready:
            return True
        self.is_ready = self.number > 0
        if self.is_ready:
            self.purgatory.check("a")
        return self.is_ready


def test_an_operation_that_finds_a_failure_itself_completes_once() -> None:
    """A count of waiting operations that is too low kept all followers waiting for the deadline."""
    purgatory = Purgatory("Test")
    operation = Failing(purgatory)
    purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.check("a")
    assert operation.completions == 1
    assert len(purgatory) == 0


def test_expire_takes_only_what_is_past_its_deadline_in_order() -> None:
    purgatory = Purgatory("Test")
    early, late = Waiting(50), Waiting(60)
    purgatory.try_complete_else_watch(late, ["a"])
    purgatory.try_complete_else_watch(early, ["a"])
    assert purgatory.next_deadline_ms() == 50
    purgatory.expire(50)
    assert (early.completions, late.completions) == (1, 0)
    assert purgatory.next_deadline_ms() == 60


def test_a_cancelled_operation_answers_nobody() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.cancel(operation)
    operation.is_ready = True
    purgatory.check("a")
    purgatory.expire(1000)
    assert operation.completions == 0
    assert purgatory.next_deadline_ms() is None


def test_completed_operations_leave_no_memory_behind() -> None:
    purgatory = Purgatory("Test")
    for _ in range(10_000):
        operation = Waiting(10**9)
        purgatory.try_complete_else_watch(operation, ["busy", "idle"])
        operation.is_ready = True
        purgatory.check("busy")
    assert len(purgatory) == 0
    assert purgatory._watchers == {}
    assert len(purgatory._deadlines) < 2_000


def test_an_operation_may_park_another_while_it_completes() -> None:
    purgatory = Purgatory("Test")
    second = Waiting()

    class Chained(Waiting):
        def on_complete(self) -> None:
            super().on_complete()
            purgatory.try_complete_else_watch(second, ["a"])

    first = Chained()
    purgatory.try_complete_else_watch(first, ["a"])
    first.is_ready = True
    purgatory.check("a")
    assert first.completions == 1
    assert len(purgatory) == 1


def test_stopping_completes_everything() -> None:
    purgatory = Purgatory("Test")
    operations = [Waiting(10 + i) for i in range(3)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.complete_all()
    assert [o.completions for o in operations] == [1] * 3


class Standing(Waiting):
    is_reusable = True


def register(purgatory: Purgatory, *keys: str) -> Standing:
    operation = Standing()
    operation.completed = True
    purgatory.register(operation, keys)
    return operation


def test_one_that_stands_is_parked_again_and_again() -> None:
    purgatory = Purgatory("Test")
    operation = register(purgatory, "a", "b")
    purgatory.check("a")
    assert (operation.completions, len(purgatory)) == (0, 0)
    operation.is_ready = True
    for number, key in enumerate(["a", "b", "a"]):
        purgatory.begin_wait(operation, 100)
        assert len(purgatory) == 1
        purgatory.check(key)
        purgatory.check(key)
        assert (operation.completions, len(purgatory)) == (number + 1, 0)


def test_one_that_stands_is_due_when_it_was_parked_for_last() -> None:
    purgatory = Purgatory("Test")
    operation = register(purgatory, "a")
    for deadline_ms in (100, 200, 300):
        operation.is_ready = True
        purgatory.begin_wait(operation, deadline_ms)
        if deadline_ms < 300:
            purgatory.check("a")
    assert len(purgatory._deadlines) == 1
    operation.completions = 0
    purgatory.expire(299)
    assert operation.completions == 0
    assert purgatory.next_deadline_ms() == 300
    purgatory.expire(300)
    assert operation.completions == 1
    assert purgatory.next_deadline_ms() is None
    purgatory.begin_wait(operation, 400)
    assert purgatory.next_deadline_ms() == 400


def test_one_that_stands_may_be_due_earlier_than_before() -> None:
    purgatory = Purgatory("Test")
    operation, other = register(purgatory, "a"), Waiting(deadline_ms=200)
    purgatory.watch(other, ["b"])
    operation.is_ready = True
    purgatory.begin_wait(operation, 500)
    purgatory.check("a")
    purgatory.begin_wait(operation, 5)
    assert purgatory.next_deadline_ms() == 5
    purgatory.expire(5)
    assert (operation.completions, other.completions) == (2, 0)


def test_one_that_stands_is_forgotten_parked_or_not() -> None:
    purgatory = Purgatory("Test")
    parked, idle = register(purgatory, "a"), register(purgatory, "a")
    purgatory.begin_wait(parked, 100)
    for operation in (parked, idle):
        operation.is_ready = True
        purgatory.cancel(operation)
    purgatory.check("a")
    purgatory.expire(1000)
    assert (parked.completions, idle.completions, len(purgatory)) == (0, 0, 0)
    assert purgatory._watchers == {}
    assert purgatory._queued == {}


def test_the_end_of_the_broker_completes_one_that_stands_if_it_is_parked() -> None:
    purgatory = Purgatory("Test")
    parked, idle = register(purgatory, "a"), register(purgatory, "a")
    purgatory.begin_wait(parked, 100)
    purgatory.complete_all()
    assert (parked.completions, idle.completions) == (1, 0)


def test_what_completed_is_not_kept_until_its_deadline() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting(deadline_ms=30_000)
    purgatory.watch(operation, ["a"])
    operation.is_ready = True
    purgatory.check("a")
    assert gc.get_referrers(operation) == []
