"""A broker that dies is started again at growing intervals, and left when it dies at once again."""

from __future__ import annotations

from kafkapy.tools.supervisor.restart_policy import HEALTHY_MS, RestartPolicy


def test_a_broker_that_dies_at_once_is_left_after_five_more_starts() -> None:
    policy = RestartPolicy()
    delays = [policy.record_death(200) for _ in range(6)]
    assert delays == [1000, 2000, 4000, 8000, 16_000, None]


def test_a_broker_that_has_lived_begins_anew() -> None:
    policy = RestartPolicy()
    for _ in range(5):
        policy.record_death(200)
    assert policy.record_death(HEALTHY_MS) == 1000
    assert policy.record_death(HEALTHY_MS - 1) == 2000
