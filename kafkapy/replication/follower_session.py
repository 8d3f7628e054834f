"""The follower's end of an incremental fetch session (`clients.FetchSessionHandler`).

Remembers what the leader was last told of each partition, so that a request names only what
changed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid

INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
_EPOCH_MAX: Final = 2**31 - 1


class FetchRow(NamedTuple):
    """What a follower asks of one partition; offsets in records, sizes in bytes."""

    topic_partition: TopicPartition
    topic_id: Uuid
    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FollowerFetch(NamedTuple):
    """One request: the session it belongs to, the rows to name, and those to forget.

    `asked` is everything the request is about, named or not.
    """

    session_id: int
    session_epoch: int
    rows: list[FetchRow]
    forgotten: list[tuple[TopicPartition, Uuid]]
    asked: dict[TopicPartition, FetchRow]

    @property
    def uses_topic_ids(self) -> bool:
        """Whether every partition has a topic id; otherwise Fetch v12 with names is needed."""
        rows_have = all(not row.topic_id.is_zero for row in self.asked.values())
        return rows_have and all(not topic_id.is_zero for _, topic_id in self.forgotten)


class FollowerSession:
    """The session with one leader."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._told: dict[TopicPartition, FetchRow] = {}

    def build(self, wanted: dict[TopicPartition, FetchRow]) -> FollowerFetch:
        """The next request for exactly `wanted`."""
        if self._epoch == INITIAL_EPOCH:
            return FollowerFetch(
                self._session_id, INITIAL_EPOCH, list(wanted.values()), [], dict(wanted)
            )
        told = self._told
        changed = [row for key, row in wanted.items() if told.get(key) != row]
        # Another topic of the same name must be forgotten by its old id and named by its new one.
        forgotten = [
            (key, row.topic_id)
            for key, row in told.items()
            if key not in wanted or wanted[key].topic_id != row.topic_id
        ]
        return FollowerFetch(self._session_id, self._epoch, changed, forgotten, dict(wanted))

    def answered(self, fetch: FollowerFetch, session_id: int) -> None:
        """The request was answered without a top-level error."""
        self._told = fetch.asked
        if fetch.session_epoch == INITIAL_EPOCH:
            self._session_id = session_id
            self._epoch = 1 if session_id != NO_SESSION else INITIAL_EPOCH
        elif session_id == NO_SESSION:
            self.reset()
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """The leader does not know the session, or the connection broke: begin a new one.

        The old id goes along once more, so that the leader can close it.
        """
        self._epoch = INITIAL_EPOCH
        self._told = {}
