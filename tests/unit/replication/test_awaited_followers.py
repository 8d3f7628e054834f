"""Followers that a new leader awaits, the length of the wait, and its end."""

from __future__ import annotations

from pathlib import Path

from kafkapy.replication.awaited_followers import (
    AWAIT_TIMEOUT_MS,
    PARTITIONS_PER_MS,
    SHORT_WAIT_MS,
    AwaitedFollowers,
)
from tests.harness.cores.server_parts import Parts

NOW_MS = 5_000


def test_in_sync_followers_of_whom_nothing_is_known_are_awaited(tmp_path: Path) -> None:
    parts, awaited = Parts(tmp_path), AwaitedFollowers()
    partition = parts.lead(isr=(1, 2, 3), replicas=(1, 2, 3, 4))
    partition.remote_replicas[3].log_end_offset = 0
    assert awaited.await_followers(partition, NOW_MS) == [2]
    assert awaited.wait_ms(2, 1, NOW_MS) == SHORT_WAIT_MS
    assert [awaited.wait_ms(other, 1, NOW_MS) for other in (3, 4, 9)] == [None] * 3


def test_a_long_fetch_is_parked_longer(tmp_path: Path) -> None:
    parts, awaited = Parts(tmp_path), AwaitedFollowers()
    for index in range(20):
        awaited.await_followers(parts.lead(index=index, isr=(1, 2)), NOW_MS)
    assert awaited.wait_ms(2, 3_000, NOW_MS) == 3_020 // PARTITIONS_PER_MS


def test_nobody_is_awaited_who_came_or_cannot_come_or_is_late(tmp_path: Path) -> None:
    parts, awaited = Parts(tmp_path), AwaitedFollowers()
    came, lost, late = (parts.lead(index=index, isr=(1, 2)) for index in range(3))
    for partition in (came, lost, late):
        awaited.await_followers(partition, NOW_MS)
    came.remote_replicas[2].log_end_offset = 0
    assert awaited.wait_ms(2, 1, NOW_MS) == SHORT_WAIT_MS
    lost.is_leader = False
    assert awaited.wait_ms(2, 1, NOW_MS + AWAIT_TIMEOUT_MS - 1) == SHORT_WAIT_MS
    assert awaited.wait_ms(2, 1, NOW_MS + AWAIT_TIMEOUT_MS) is None
    assert awaited._until_ms == {}


def test_what_a_dead_follower_never_asks_for_is_forgotten(tmp_path: Path) -> None:
    parts, awaited = Parts(tmp_path), AwaitedFollowers()
    first, second, third = (parts.lead(index=index, isr=(1, 2)) for index in range(3))
    awaited.await_followers(first, NOW_MS)
    awaited.await_followers(second, NOW_MS + 1)
    awaited.await_followers(first, NOW_MS + 2)  # again, in another epoch
    awaited.await_followers(third, NOW_MS + 1 + AWAIT_TIMEOUT_MS)
    assert list(awaited._until_ms[2]) == [first, third]
