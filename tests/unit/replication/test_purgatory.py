"""A parked request completes exactly once: when it becomes ready, at its deadline, or never if
cancelled."""

from __future__ import annotations

from kafkapy.replication.purgatory import DelayedOperation, Purgatory


class Waiting(DelayedOperation):
    def __init__(self, deadline_ms: int = 100, ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = ready
        self.completions: list[bool] = []

    def ready(self) -> bool:
        return self.is_ready

    def on_complete(self, expired: bool) -> None:
        self.completions.append(expired)


def test_a_ready_operation_is_never_parked() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting(ready=True)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.completions == [False]
    assert len(purgatory) == 0


def test_check_completes_what_became_ready_once_over_all_keys() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory.check("a")
    assert operation.completions == []
    operation.is_ready = True
    purgatory.check("b")
    purgatory.check("a")
    purgatory.expire(1000)
    assert operation.completions == [False]
    assert len(purgatory) == 0


def test_expire_takes_only_what_is_past_its_deadline_in_order() -> None:
    purgatory = Purgatory("Test")
    early, late = Waiting(50), Waiting(60)
    purgatory.try_complete_else_watch(late, ["a"])
    purgatory.try_complete_else_watch(early, ["a"])
    assert purgatory.next_deadline_ms() == 50
    purgatory.expire(50)
    assert (early.completions, late.completions) == ([True], [])
    assert purgatory.next_deadline_ms() == 60
    assert purgatory.expired_count == 1


def test_a_cancelled_operation_answers_nobody() -> None:
    purgatory = Purgatory("Test")
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.cancel(operation)
    operation.is_ready = True
    purgatory.check("a")
    purgatory.expire(1000)
    assert operation.completions == []
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
        def on_complete(self, expired: bool) -> None:
            super().on_complete(expired)
            purgatory.try_complete_else_watch(second, ["a"])

    first = Chained()
    purgatory.try_complete_else_watch(first, ["a"])
    first.is_ready = True
    purgatory.check("a")
    assert first.completions == [False]
    assert len(purgatory) == 1


def test_stopping_completes_everything_as_expired() -> None:
    purgatory = Purgatory("Test")
    operations = [Waiting(10 + i) for i in range(3)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.complete_all()
    assert [o.completions for o in operations] == [[True]] * 3
