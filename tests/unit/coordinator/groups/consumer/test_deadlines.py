"""Deadlines of members."""

from __future__ import annotations

from kafkapy.coordinator.groups.consumer import deadlines
from tests.harness.cores.consumer_shell import REVOCATION_MS, SESSION_MS, ConsumerShell


def test_a_session_is_as_long_as_the_configuration_says() -> None:
    shell = ConsumerShell()
    deadlines.reset_session(shell.coordinator._core, 7, "g", "m")
    assert shell.coordinator.next_deadline_ms() == 7 + SESSION_MS
    deadlines.cancel_timers(shell.coordinator._core, "g", "m")
    assert shell.coordinator.next_deadline_ms() is None


def test_a_group_may_have_a_session_timeout_of_its_own() -> None:
    shell = ConsumerShell()
    shell.coordinator.configure_group("g", {"consumer.session.timeout.ms": 50_000})
    core = shell.coordinator._core
    deadlines.reset_session(core, 7, "other", "m")
    assert shell.coordinator.next_deadline_ms() == 7 + SESSION_MS
    deadlines.reset_session(core, 7 + SESSION_MS, "other", "m")
    deadlines.reset_session(core, 7, "g", "m")
    assert shell.coordinator.next_deadline_ms() == 7 + 50_000


def test_a_revocation_has_a_deadline_of_its_own() -> None:
    shell = ConsumerShell()
    core = shell.coordinator._core
    deadlines.limit_revocation(core, 5, "g", "m")
    deadlines.reset_session(core, 7, "g", "m")
    assert shell.coordinator.next_deadline_ms() == 5
    deadlines.end_revocation(core, "g", "m")
    assert shell.coordinator.next_deadline_ms() == 7 + SESSION_MS


def test_timers_of_a_loaded_group() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    shell.consumer("b")
    first.beat()  # it must revoke
    core = shell.coordinator._core
    for member_id in ("a", "b"):
        deadlines.cancel_timers(core, "g", member_id)
    deadlines.start_timers(core, 100_000, shell.consumers)
    found = []
    while (due_ms := core.timers.next_deadline_ms()) is not None:
        found.append(due_ms)
        core.timers.pop_due(due_ms)
    assert found == [100_000 + SESSION_MS] * 2 + [100_000 + REVOCATION_MS]
