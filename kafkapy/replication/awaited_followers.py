"""Followers whose first fetch from a new leader is awaited.

A follower adds a partition with its next fetch. Its previous fetch may still wait at the leader for
`replica.fetch.wait.max.ms`. A record produced meanwhile with acks=all, to a new topic or after a
failover, would wait as long: 250 ms on average, as with Kafka. So a new leader answers the waiting
fetches of its in-sync followers. The followers' next fetches wait only shortly, until the followers
have fetched every awaited partition, or a time limit has passed.
"""

from __future__ import annotations

from typing import Final

from kafkapy.replication.partition import Partition

AWAIT_TIMEOUT_MS: Final = 2000
"""The time for which a follower is awaited after the leadership began."""
SHORT_WAIT_MS: Final = 5
PARTITIONS_PER_MS: Final = 10
"""A fetch with many requested or awaited partitions waits longer, because checking them again costs
time.
"""


class AwaitedFollowers:
    """Followers that are awaited, their partitions, and the time limit."""

    def __init__(self) -> None:
        self._until_ms: dict[int, dict[Partition, int]] = {}

    def await_followers(self, partition: Partition, now_ms: int) -> list[int]:
        """Await the followers that have not fetched in this leader epoch; returns them."""
        followers = [
            replica.broker_id
            for replica in partition.remote_replicas.values()
            if replica.log_end_offset < 0 and replica.broker_id in partition.isr
        ]
        for follower in followers:
            awaited = self._until_ms.setdefault(follower, {})
            # A stopped broker never fetches: overdue entries must not accumulate.
            while awaited and next(iter(awaited.values())) <= now_ms:
                del awaited[next(iter(awaited))]
            awaited.pop(partition, None)  # entries are in the order of time
            awaited[partition] = now_ms + AWAIT_TIMEOUT_MS
        return followers

    def wait_ms(self, follower: int, partition_count: int, now_ms: int) -> int | None:
        """The longest time that a fetch of this many partitions may wait; None for no limit.

        Checks everything that is awaited from the follower, so call it only for a fetch that waits.
        """
        awaited = self._until_ms.get(follower)
        if awaited is None:
            return None
        self._until_ms[follower] = awaited = {
            partition: until_ms
            for partition, until_ms in awaited.items()
            if until_ms > now_ms and _is_awaited(partition, follower)
        }
        if not awaited:
            del self._until_ms[follower]
            return None
        return max(SHORT_WAIT_MS, (partition_count + len(awaited)) // PARTITIONS_PER_MS)


def _is_awaited(partition: Partition, follower: int) -> bool:
    replica = partition.remote_replicas.get(follower)
    return partition.is_leader and replica is not None and replica.log_end_offset < 0
