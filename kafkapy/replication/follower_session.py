"""The follower's end of an incremental fetch session (`clients.FetchSessionHandler`).

Stores the last sent values of each partition, so that a request names only changed ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.replication.partition import Partition

INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
_NONE_FORGOTTEN: Final[list[tuple[TopicPartition, Uuid]]] = []


class FetchRow(NamedTuple):
    """One partition of a follower's fetch; offsets in records, sizes in bytes."""

    topic_partition: TopicPartition
    topic_id: Uuid
    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int

    def is_current_for(self, partition: Partition, leader_epoch: int) -> bool:
        """Whether these values, which were sent, are still valid."""
        log = partition.log
        return (
            self.fetch_offset == log.local.log_end_offset
            and self.last_fetched_epoch == log.epochs.latest
            and self.log_start_offset == log.log_start_offset
            and self.current_leader_epoch == leader_epoch
            and self.topic_id is partition.topic_id
        )


class FollowerFetch(NamedTuple):
    """One request: its session, the rows that it names, and those to forget.

    `requested` has every partition of the session, named in the request or not. `uses_topic_ids`:
    every partition has one; otherwise the request needs Fetch v12, which has names.
    """

    session_id: int
    session_epoch: int
    rows: list[FetchRow]
    forgotten: list[tuple[TopicPartition, Uuid]]
    requested: dict[TopicPartition, FetchRow]
    uses_topic_ids: bool


class FollowerSession:
    """The session with one leader. `last_sent` has the last sent values of each partition."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self.last_sent: dict[TopicPartition, FetchRow] = {}
        self._have_topic_ids = False

    def build(self, wanted: dict[TopicPartition, FetchRow]) -> FollowerFetch:
        """The next request, for exactly the partitions in `wanted`. Keeps `wanted`."""
        if self._epoch == INITIAL_EPOCH:
            self._have_topic_ids = _are_ids(row.topic_id for row in wanted.values())
            rows = list(wanted.values())
            return FollowerFetch(
                self._session_id, INITIAL_EPOCH, rows, [], wanted, self._have_topic_ids
            )
        last_sent = self.last_sent
        changed = []
        kept = 0
        for key, row in wanted.items():
            before = last_sent.get(key)
            if before is row:
                kept += 1
                continue
            if before != row:
                changed.append(row)
            kept += before is not None and before.topic_id == row.topic_id
        uses_topic_ids, forgotten = self._have_topic_ids, _NONE_FORGOTTEN
        if not kept == len(last_sent) == len(wanted):
            # A topic that was created again is forgotten by its old id, and added by its new one.
            forgotten = [
                (key, row.topic_id)
                for key, row in last_sent.items()
                if key not in wanted or wanted[key].topic_id != row.topic_id
            ]
            self._have_topic_ids = _are_ids(row.topic_id for row in wanted.values())
            uses_topic_ids = self._have_topic_ids and _are_ids(gone for _, gone in forgotten)
            if not uses_topic_ids:
                # Leaders add, then forget partitions: by name they would forget the new topic.
                forgotten = [each for each in forgotten if each[0] not in wanted]
        return FollowerFetch(
            self._session_id, self._epoch, changed, forgotten, wanted, uses_topic_ids
        )

    def handle_response(self, fetch: FollowerFetch, session_id: int) -> None:
        """Note a response without a top-level error."""
        self.last_sent = fetch.requested
        if fetch.session_epoch == INITIAL_EPOCH:
            self._session_id = session_id
            self._epoch = 1 if session_id != NO_SESSION else INITIAL_EPOCH
        elif session_id == NO_SESSION:
            self.reset()
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """Begin a new session: the leader has removed the old one, or the connection broke.

        The next request has the old id, so that the leader can close that session.
        """
        self._epoch = INITIAL_EPOCH
        self.last_sent = {}


def _are_ids(topic_ids: Iterable[Uuid]) -> bool:
    return all(not topic_id.is_zero for topic_id in topic_ids)
