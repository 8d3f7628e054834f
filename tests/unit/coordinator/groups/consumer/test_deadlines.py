"""Deadlines of members."""

from __future__ import annotations

from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.timers import TimerKind
from tests.harness.cores.consumer_shell import REVOCATION_MS, SESSION_MS, ConsumerShell


def dues(shell: ConsumerShell) -> list[int]:
    timers, found = shell.coordinator._core.timers, []
    while (due_ms := timers.next_deadline_ms()) is not None:
        found.append(due_ms)
        timers.pop_due(due_ms)
    return found


def test_a_session_is_as_long_as_the_configuration_says() -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    core = shell.coordinator._core
    deadlines.reset_session(core, 7, shell.consumers, "m")
    assert shell.coordinator.next_deadline_ms() == 7 + SESSION_MS
    deadlines.cancel_timers(core, "g", "m")
    assert shell.coordinator.next_deadline_ms() is None


def test_a_group_may_have_a_session_timeout_of_its_own() -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    core, group = shell.coordinator._core, shell.consumers
    shell.coordinator.configure_group("other", {"consumer.session.timeout.ms": 40_000})
    deadlines.reset_session(core, 7, group, "m")
    assert shell.coordinator.next_deadline_ms() == 7 + SESSION_MS
    shell.coordinator.configure_group("g", {"consumer.session.timeout.ms": 50_000})
    deadlines.reset_session(core, 7, group, "m")
    assert shell.coordinator.next_deadline_ms() == 7 + 50_000


def test_a_step_has_the_rebalance_timeout_from_when_it_was_asked_for_first() -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    core, group = shell.coordinator._core, shell.consumers
    deadlines.cancel_all(core, group)
    deadlines.schedule_rebalance_timeout(core, 5, TimerKind.CONSUMER_JOIN, group, "m")
    deadlines.schedule_rebalance_timeout(core, 9, TimerKind.CONSUMER_JOIN, group, "m")
    assert shell.coordinator.next_deadline_ms() == 5 + REVOCATION_MS
    deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_JOIN, group, "m")
    assert shell.coordinator.next_deadline_ms() is None


def test_timers_of_a_loaded_group() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    shell.consumer("b")
    first.beat()  # it must revoke
    core = shell.coordinator._core
    deadlines.cancel_all(core, shell.consumers)
    deadlines.start_timers(core, 100_000, shell.consumers)
    assert dues(shell) == [100_000 + SESSION_MS] * 2 + [100_000 + REVOCATION_MS]
