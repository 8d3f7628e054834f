"""A leader's view of a follower (`kafka.cluster.Replica`)."""

from __future__ import annotations

from typing import Final

# Longer ago than any lag: a machine's monotonic clock may have started a second ago.
NEVER_MS: Final = -(1 << 62)


class Replica:
    """One remote replica as its leader sees it.

    `log_end_offset` is -1 until its first fetch after this leader took over. A replica's caught-up
    time is the last time at which its fetch offset had reached the leader's log end offset of that
    time.
    """

    __slots__ = (
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = -1
        self.log_start_offset = -1
        self.last_caught_up_ms = NEVER_MS
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = 0

    def reset(self, now_ms: int, in_isr: bool) -> None:
        """Reset the position when this broker begins to lead. ISR members get a full lag time."""
        self.log_end_offset = -1
        self.log_start_offset = -1
        self.last_caught_up_ms = now_ms if in_isr else NEVER_MS
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = 0

    def keep_position(self, now_ms: int, in_isr: bool, leader_end_offset: int) -> None:
        """Keep the position in a new leader epoch, because this broker led before."""
        self.last_caught_up_ms = self.last_fetch_ms = now_ms if in_isr else NEVER_MS
        self.last_fetch_leader_end_offset = leader_end_offset

    def on_fetch(
        self, fetch_offset: int, log_start_offset: int, now_ms: int, leader_end_offset: int
    ) -> None:
        """Record a follower's fetch at `fetch_offset`, which is its log end offset.

        `leader_end_offset` was sampled before the read that answers the fetch.
        """
        if fetch_offset >= leader_end_offset:
            caught_up_ms = now_ms
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            caught_up_ms = self.last_fetch_ms
        else:
            caught_up_ms = NEVER_MS
        # Faster than `max`: each fetch calls this for every partition of a follower's session.
        if caught_up_ms > self.last_caught_up_ms:
            self.last_caught_up_ms = caught_up_ms
        self.log_end_offset = fetch_offset
        if log_start_offset > self.log_start_offset:
            self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms

    def record_caught_up(self, now_ms: int, leader_end_offset: int) -> None:
        """Record a fetch of a replica that had all records before, and still has them."""
        self.last_caught_up_ms = self.last_fetch_ms = now_ms
        self.last_fetch_leader_end_offset = leader_end_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Whether the replica may count as in sync at `now_ms`."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= lag_max_ms
        )
