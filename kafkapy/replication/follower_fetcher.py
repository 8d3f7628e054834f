"""Applies a leader's fetch responses (`AbstractFetcherThread`, `ReplicaFetcherThread`).

One fetcher follows one leader for some partitions. It never waits: its caller sends the request
from `next_fetch`, and passes the response to `on_response`. Divergence is detected by epoch, on
fetch (KIP-595), not by offset.

| a partition is |meaning                                            | leaves by                   |
|----------------|---------------------------------------------------|-----------------------------|
| fetching       |its next offset is requested                       | a response                  |
| delayed        |a fetch or an append failed; it is repeated later  | the clock                   |
| out of range   |the leader's first and last offset are requested   | `on_leader_offsets`         |
| failed         |its leader epoch is fenced                         | `follow` with another epoch |
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.follower_session import FetchRow, FollowerFetch, FollowerSession
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuota
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.log_append import UnexpectedAppendOffset

_log = logging.getLogger("kafka.server.ReplicaFetcherThread")

_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


_LOG_AGAIN_MS: Final = 60_000
_FIRST_DELAY_MS: Final = 20


class FollowState(Enum):
    """The states in the table above."""

    FETCHING = "fetching"
    DELAYED = "delayed"
    OUT_OF_RANGE = "out of range"
    FAILED = "failed"


class LeaderRow(NamedTuple):
    """A leader's response for one partition; `diverging_epoch` is (epoch, end offset)."""

    topic_partition: TopicPartition
    error: int
    high_watermark: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None
    records: memoryview | bytes


class _FollowedPartition:
    """One followed partition."""

    __slots__ = (
        "delay_ms",
        "due_ms",
        "lag",
        "leader_epoch",
        "logged_error",
        "logged_ms",
        "partition",
        "state",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = FollowState.FETCHING
        self.due_ms = 0
        self.delay_ms = 0  # the last delay; 0 after a response without an error
        self.lag: int | None = None  # records behind the leader's high watermark
        self.logged_error: ErrorCode | None = None  # the error that was logged last
        self.logged_ms = 0

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0


class FollowerFetcher:
    """Follows one leader. `partition_max_bytes` and `backoff_ms` are `replica.fetch.*`; `quota` is
    the follower's replication quota. `on_log_dir_failure` is called when a log's disk failed; the
    other partitions of the response are applied all the same.
    """

    def __init__(
        self,
        leader_id: int,
        partition_max_bytes: int,
        backoff_ms: int,
        quota: ReplicationQuota,
        on_log_dir_failure: Callable[[LogDirFailure], None],
    ) -> None:
        self.leader_id = leader_id
        self._partition_max_bytes = partition_max_bytes
        self._backoff_ms = backoff_ms
        self._quota = quota
        self._on_log_dir_failure = on_log_dir_failure
        self._throttled_until_ms: int | None = None
        self._session = FollowerSession()
        self._following: dict[TopicPartition, _FollowedPartition] = {}
        self._untruncated: dict[
            TopicPartition, _FollowedPartition
        ] = {}  # to truncate before their first fetch
        self._may_be_out_of_range = False  # saves a search of thousands of partitions

    def __len__(self) -> int:
        return len(self._following)

    @property
    def partitions(self) -> list[Partition]:
        """The followed partitions."""
        return [following.partition for following in self._following.values()]

    @property
    def max_lag(self) -> int:
        """The most records between a log's end and its leader's high watermark."""
        return max((following.lag or 0 for following in self._following.values()), default=0)

    @property
    def out_of_range(self) -> list[Partition]:
        """Partitions for which the caller must request the leader's offsets."""
        if not self._may_be_out_of_range:
            return []
        found = [
            f.partition for f in self._following.values() if f.state is FollowState.OUT_OF_RANGE
        ]
        self._may_be_out_of_range = bool(found)
        return found

    def state(self, topic_partition: TopicPartition) -> FollowState | None:
        """The state of a partition; None if it is not followed here."""
        following = self._following.get(topic_partition)
        return None if following is None else following.state

    def follow(self, partition: Partition) -> None:
        """Follow from the end of the log. A log without leader epochs starts at its high watermark,
        because divergence beyond it cannot be detected (KIP-101).
        """
        topic_partition, log = partition.topic_partition, partition.log
        following = self._following[topic_partition] = _FollowedPartition(partition)
        if log.epochs.latest < 0 and log.log_end_offset > log.high_watermark:
            self._untruncated[topic_partition] = following
            self._truncate_to_high_watermark(following)

    def unfollow(self, topic_partition: TopicPartition) -> None:
        """Stop following a partition."""
        self._following.pop(topic_partition, None)
        self._untruncated.pop(topic_partition, None)

    def _truncate_to_high_watermark(self, following: _FollowedPartition) -> bool:
        """Truncate a log without leader epochs. Returns False if it must be tried again, so
        that the other partitions are not affected.
        """
        topic_partition, log = following.partition.topic_partition, following.partition.log
        try:
            log.truncate_to(max(log.high_watermark, log.log_start_offset))
        except LogDirFailure as failure:
            self._on_log_dir_failure(failure)
        except ApiError as error:
            _log.error("Cannot cut %s: %s", topic_partition, error.message)
            return False
        self._untruncated.pop(topic_partition, None)
        return True

    def next_fetch(self, now_ms: int) -> FollowerFetch | None:
        """The next request; None if nothing can be fetched now.

        Throttled partitions that are out of sync are left out while the quota is exceeded.
        """
        for following in list(self._untruncated.values()):
            if following.due_ms <= now_ms and not self._truncate_to_high_watermark(following):
                self._delay(following, now_ms)
        wanted = {}
        last_sent = self._session.last_sent
        exceeded = self._quota.is_exceeded(now_ms)
        self._throttled_until_ms = None
        for key, following in self._following.items():
            if following.state is FollowState.DELAYED and following.due_ms <= now_ms:
                following.state = FollowState.FETCHING
            if following.state is not FollowState.FETCHING:
                continue
            if exceeded and not following.is_in_sync and self._is_throttled(following.partition):
                self._throttled_until_ms = now_ms + self._backoff_ms
                continue
            row = last_sent.get(key)
            if row is None or not row.is_current_for(following.partition, following.leader_epoch):
                row = self._row(key, following)
            wanted[key] = row
        return self._session.build(wanted) if wanted else None

    def next_due_ms(self) -> int | None:
        """The time at which a delayed or throttled partition is fetched again."""
        due = [f.due_ms for f in self._following.values() if f.state is FollowState.DELAYED]
        if self._throttled_until_ms is not None:
            due.append(self._throttled_until_ms)
        return min(due, default=None)

    def _is_throttled(self, partition: Partition) -> bool:
        throttled = partition.log.config.follower_replication_throttled_replicas
        return self._quota.covers(throttled, partition.topic_partition.partition)

    def _row(self, key: TopicPartition, following: _FollowedPartition) -> FetchRow:
        partition = following.partition
        log = partition.log
        return FetchRow(
            key,
            partition.topic_id,
            log.log_end_offset,
            following.leader_epoch,
            log.epochs.latest,
            log.log_start_offset,
            self._partition_max_bytes,
        )

    # answers

    def on_unreachable(self, now_ms: int) -> None:
        """Handle a request without a response: begin a new session after the back-off."""
        self._session.reset()
        for following in self._following.values():
            if following.state is FollowState.FETCHING:
                self._delay(following, now_ms)

    def on_response(
        self,
        fetch: FollowerFetch,
        error: int,
        session_id: int,
        rows: Iterable[LeaderRow],
        now_ms: int,
        time_ms: int,
    ) -> list[Partition]:
        """Apply a leader's response. Returns the partitions whose log or high watermark changed.

        `time_ms` is wall-clock, for the log.
        """
        if error != ErrorCode.NONE:
            self._session.reset()
            if error not in _SESSION_ERRORS:
                self.on_unreachable(now_ms)
            return []
        self._session.handle_response(fetch, session_id)
        changed = []
        for row in rows:
            following = self._following.get(row.topic_partition)
            requested = fetch.requested.get(row.topic_partition)
            if following is None or requested is None or not self._is_current(following, requested):
                continue
            try:
                if self._apply(following, row, now_ms, time_ms):
                    changed.append(following.partition)
            except LogDirFailure as failure:
                self._on_log_dir_failure(failure)
            except StorageShortage as shortage:
                self._delay_for_shortage(following, shortage, now_ms)
            except ApiError as damage:  # of the local log, which must be truncated
                _log.error("Cannot cut %s: %s", row.topic_partition, damage.message)
                self._delay(following, now_ms)
        return changed

    def _is_current(self, following: _FollowedPartition, requested: FetchRow) -> bool:
        """Whether the response matches the partition's present state. A topic that was deleted and
        created again has another id, but begins with the epoch and the offset of the old topic.
        """
        partition = following.partition
        return (
            following.state is FollowState.FETCHING
            and following.leader_epoch == requested.current_leader_epoch
            and partition.log.local.log_end_offset == requested.fetch_offset
            and (requested.topic_id == partition.topic_id or requested.topic_id.is_zero)
        )

    def _apply(
        self, following: _FollowedPartition, row: LeaderRow, now_ms: int, time_ms: int
    ) -> bool:
        partition = following.partition
        if row.error != ErrorCode.NONE:
            self._on_error(following, ErrorCode(row.error), now_ms)
            return False
        following.delay_ms = 0
        if row.diverging_epoch is not None:
            self._truncate_diverging(partition, *row.diverging_epoch)
            return True
        log = partition.log
        end_before, committed_before = log.local.log_end_offset, log.high_watermark
        if row.records and not self._append(following, row.records, now_ms, time_ms):
            return False
        end = log.local.log_end_offset
        following.lag = row.high_watermark - end if row.high_watermark > end else 0
        if self._quota.limit is not None and self._is_throttled(partition):
            self._quota.record(len(row.records), now_ms)
        if row.high_watermark > log.high_watermark:
            log.update_high_watermark(row.high_watermark)
        if row.log_start_offset > log.log_start_offset:
            self._raise_log_start(partition, row.log_start_offset)
        return end_before != log.local.log_end_offset or committed_before != log.high_watermark

    def _append(
        self, following: _FollowedPartition, records: memoryview | bytes, now_ms: int, time_ms: int
    ) -> bool:
        log = following.partition.log
        try:
            log.append_as_follower(records, time_ms, following.leader_epoch)
        except StorageShortage as shortage:
            self._delay_for_shortage(following, shortage, now_ms)
            return False
        except ApiError as error:
            if isinstance(error, UnexpectedAppendOffset) and error.next_offset > log.log_end_offset:
                # The logs differ within one leader epoch: the leader lost part of its log and
                # still leads in that epoch. The leader's log counts from the first offset that is
                # known to differ. Kafka stops following.
                self._truncate_to(following.partition, error.first_offset)
                return True
            _log.error("Found invalid data from leader %d for %s: %s; fetching it again",
                       self.leader_id, following.partition.topic_partition, error)  # fmt: skip
            self._delay(following, now_ms)
            return False
        return True

    def _raise_log_start(self, partition: Partition, leader_start: int) -> None:
        log = partition.log
        if leader_start > log.log_end_offset:
            log.truncate_fully_and_start_at(leader_start)
        elif leader_start <= log.high_watermark:
            log.maybe_increment_log_start_offset(leader_start, "leader offset increment")

    def _on_error(self, following: _FollowedPartition, error: ErrorCode, now_ms: int) -> None:
        key = following.partition.topic_partition
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            following.state = FollowState.OUT_OF_RANGE
            self._may_be_out_of_range = True
        elif error is ErrorCode.FENCED_LEADER_EPOCH:
            _log.info(
                "Partition %s has an older epoch (%d) than leader %d: waiting for LeaderAndIsr",
                key,
                following.leader_epoch,
                self.leader_id,
            )
            following.state = FollowState.FAILED
        else:
            if error is not following.logged_error or now_ms - following.logged_ms >= _LOG_AGAIN_MS:
                following.logged_error, following.logged_ms = error, now_ms
                _log.info(
                    "Leader %d answered %s for %s; asking again", self.leader_id, error.name, key
                )
            self._delay(following, now_ms)

    def _delay_for_shortage(
        self, following: _FollowedPartition, shortage: StorageShortage, now_ms: int
    ) -> None:
        _log.warning("Following leader %d goes on later: %s", self.leader_id, shortage)
        self._delay(following, now_ms)

    def _delay(self, following: _FollowedPartition, now_ms: int) -> None:
        """Delay the next fetch, shortly at first, then longer up to the back-off: a follower may
        get the controller's command before the leader. (Kafka always waits the whole back-off.)
        """
        following.state = FollowState.DELAYED
        following.delay_ms = min(max(_FIRST_DELAY_MS, 2 * following.delay_ms), self._backoff_ms)
        following.due_ms = now_ms + following.delay_ms

    # truncation

    def _truncate_diverging(self, partition: Partition, leader_epoch: int, leader_end: int) -> None:
        """Truncate where this log diverges from the leader's (`getOffsetTruncationState`).

        If this log does not have the leader's epoch, one truncation may not be enough. The next
        fetch names an older epoch, and its response has the next offset (KIP-279).
        """
        log = partition.log
        if leader_end < 0:
            target = log.high_watermark
        elif leader_epoch < 0:
            target = min(leader_end, log.log_end_offset)
        else:
            epoch, end = log.end_offset_for_epoch(leader_epoch)
            target = min(leader_end, log.log_end_offset)
            if epoch >= 0:
                target = min(target, end)
        self._truncate_to(partition, target)

    @staticmethod
    def _truncate_to(partition: Partition, target: int) -> None:
        log = partition.log
        if target < log.high_watermark:
            _log.warning("Truncating %s to offset %d below high watermark %d",
                         partition.topic_partition, target, log.high_watermark)  # fmt: skip
        log.truncate_to(target)

    def on_leader_offsets(
        self, topic_partition: TopicPartition, earliest: int, latest: int, now_ms: int
    ) -> None:
        """Apply the leader's log range, requested because this log's end was outside of it.

        A log that ends after the leader's end is truncated to it. One that ends before the leader's
        start is emptied and starts there (`fetchOffsetAndApplyTruncateAndMaybeStart`).
        """
        following = self._following.get(topic_partition)
        if following is None or following.state is not FollowState.OUT_OF_RANGE:
            return
        try:
            self._reset_to_leader_range(following.partition, earliest, latest)
        except StorageShortage as shortage:
            _log.warning("Following leader %d goes on later: %s", self.leader_id, shortage)
        except ApiError as damage:
            _log.error("Cannot cut %s: %s", topic_partition, damage.message)
        # Not at once: a leader that answers out of range again must not make a busy loop.
        self._delay(following, now_ms)

    @staticmethod
    def _reset_to_leader_range(partition: Partition, earliest: int, latest: int) -> None:
        log, topic_partition = partition.log, partition.topic_partition
        if latest < log.log_end_offset:
            _log.warning("Reset fetch offset for %s from %d to the leader's end %d",
                         topic_partition, log.log_end_offset, latest)  # fmt: skip
            log.truncate_to(max(latest, 0))
        if earliest > log.log_end_offset:
            log.truncate_fully_and_start_at(earliest)

    def on_leader_offsets_failed(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Fetch again later, because the leader returned no offsets."""
        following = self._following.get(topic_partition)
        if following is not None and following.state is FollowState.OUT_OF_RANGE:
            self._delay(following, now_ms)
