"""Throttled replication moves its bytes at the configured rate; nothing else is held back."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.replication.replication_quota import (
    FOLLOWER_RATE,
    LEADER_RATE,
    ReplicationQuota,
    ReplicationQuotas,
)

START = 5_000_000


@pytest.fixture
def quota() -> ReplicationQuota:
    made = ReplicationQuota(1, 1000, 11)
    made.limit = 1000
    return made


@pytest.mark.parametrize(
    ("throttled", "covered"),
    [
        ((), []),
        (("none",), []),
        (("*",), [0, 1, 2]),
        (("0:1", "2:1", "1:2"), [0, 2]),
        (("0:11", "1:12"), []),
        (("1" * 5000 + ":1", "0:" + "1" * 5000, "2:1"), [2]),
    ],
)
def test_the_topics_config_names_the_replicas(
    quota: ReplicationQuota, throttled: tuple[str, ...], covered: list[int]
) -> None:
    assert [partition for partition in range(3) if quota.covers(throttled, partition)] == covered


def test_without_a_rate_nothing_is_throttled() -> None:
    quota = ReplicationQuota(1, 1000, 11)
    quota.record(1 << 40, START)
    assert not quota.covers(("*",), 0)
    assert not quota.is_exceeded(START)


@pytest.mark.parametrize(("size", "chunk"), [(100_000, 100), (60_000, 4000), (30_000, 1500)])
def test_n_bytes_at_rate_r_take_n_through_r(quota: ReplicationQuota, size: int, chunk: int) -> None:
    now, moved = START, 0
    while moved < size:
        if not quota.is_exceeded(now):
            quota.record(chunk, now)
            moved += chunk
        now += 10
    expected_ms = size * 1000 / 1000
    assert expected_ms * 0.85 <= now - START <= expected_ms * 1.15


def test_what_is_older_than_all_windows_is_forgotten(quota: ReplicationQuota) -> None:
    quota.record(9000, START)
    assert quota.rate(START) == 9000
    assert quota.rate(START + 3000) == 3000
    assert quota.is_exceeded(START + 8999)
    assert not quota.is_exceeded(START + 9000)
    assert quota.rate(START + 11_000) == 0


def test_the_windows_are_those_of_the_config() -> None:
    quota = ReplicationQuota(1, 2000, 2)
    quota.limit = 1000
    quota.record(6000, START)
    assert quota.rate(START) == 3000
    assert quota.is_exceeded(START + 3999)
    assert not quota.is_exceeded(START + 4000)


def test_the_two_rates_follow_the_brokers_configs() -> None:
    quotas = ReplicationQuotas(1)
    quotas.set_rates({LEADER_RATE: "10", FOLLOWER_RATE: "20"})
    assert (quotas.leader.limit, quotas.follower.limit) == (10, 20)
    with pytest.raises(ConfigError, match="Invalid value much for configuration follower"):
        quotas.set_rates({LEADER_RATE: "1", FOLLOWER_RATE: "much"})
    assert (quotas.leader.limit, quotas.follower.limit) == (10, 20)
    quotas.set_rates({FOLLOWER_RATE: "5"})
    assert (quotas.leader.limit, quotas.follower.limit) == (None, 5)
