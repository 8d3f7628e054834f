"""Incremental fetch sessions (KIP-227; `kafka.server.FetchSession`, `FetchManager`).

A request names a session and an epoch; the outcome is a `FetchContext`. It has the plan (the
partitions to read, in order), and selects the rows to send.

| session id / epoch | meaning |
|---|---|
| 0 / -1 | sessionless full fetch |
| 0 / 0  | full fetch, make a session |
| N / -1 | close session N, then sessionless |
| N / 0  | close session N, make a new one |
| N / e  | incremental: names only changed partitions |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Random
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.storage.file_records import FileRegion
from kafkapy.storage.transaction_index import AbortedTransaction

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
EVICTION_IDLE_MS: Final = 120_000
PARTITIONS_MAX: Final = 50_000
"""The limit for the sessions of all consumers together, and also for those of all brokers: 17 MB
each."""
_SMALL_SESSION_MAX: Final = 256
"""The number of partitions that any session may have, regardless of `PARTITIONS_MAX`."""

PartitionKey = tuple[str | bytes, int]
"""A topic's name or id, and a partition index."""


class FetchPartition:
    """A partition of a fetch session: the latest request and response (`CachedPartition`).

    `topic` is None while a topic id is unknown. Offsets in records, `max_bytes` in bytes.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_log_start_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: Uuid,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        follower_log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.follower_log_start_offset = follower_log_start_offset
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    def update(self, wanted: FetchPartition) -> None:
        """Apply a later request of the session."""
        self.topic = wanted.topic or self.topic
        self.update_request_params(
            wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch,
            wanted.follower_log_start_offset, wanted.max_bytes,
        )  # fmt: skip

    def update_request_params(
        self,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        follower_log_start_offset: int,
        max_bytes: int,
    ) -> None:
        """Apply a later request, given field by field."""
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        if current_leader_epoch != self.current_leader_epoch:
            # The client may have dropped the response of another epoch.
            self.current_leader_epoch = current_leader_epoch
            self.sent_high_watermark = -1
        self.last_fetched_epoch = last_fetched_epoch
        if follower_log_start_offset >= 0:
            self.follower_log_start_offset = follower_log_start_offset

    def maybe_update_response_data(self, high_watermark: int, log_start_offset: int) -> bool:
        """Whether these values were not sent to the client yet. Records them as sent."""
        has_changed = (
            self.sent_high_watermark != high_watermark
            or self.sent_log_start_offset != log_start_offset
        )
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset
        return has_changed


class FetchResult:
    """One partition's row of a fetch: either data or an error.

    `records` has batches, of which the last may be incomplete, or a region of a file; `size_bytes`
    is their length. Consumers read from `preferred_read_replica` next, unless that is -1.
    """

    __slots__ = (
        "aborted_transactions",
        "diverging_epoch",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
        "size_bytes",
        "wanted",
    )

    def __init__(self, wanted: FetchPartition, error: int = 0) -> None:
        self.wanted = wanted
        self.error = error
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.preferred_read_replica = -1
        self.records: bytes | FileRegion = b""
        self.size_bytes = 0
        self.aborted_transactions: list[AbortedTransaction] | None = [] if error else None
        self.diverging_epoch: tuple[int, int] | None = None

    def must_send(self) -> bool:
        """Whether an incremental response includes this row. Records the values as sent."""
        wanted = self.wanted
        send = bool(
            wanted.maybe_update_response_data(self.high_watermark, self.log_start_offset)
            or self.size_bytes
            or self.error
            or self.diverging_epoch
            or self.preferred_read_replica >= 0
        )
        if self.error or self.diverging_epoch:
            # The next success must be sent even if nothing else changes.
            wanted.sent_high_watermark = -1
        return send


class FetchSession:
    """One client's set of partitions, kept between its requests, and the number of its changes."""

    __slots__ = ("change_count", "created_ms", "epoch", "last_used_ms", "partitions", "privileged",
                 "session_id", "uses_topic_ids")  # fmt: skip

    def __init__(
        self, session_id: int, privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.change_count = 0
        self.partitions: dict[PartitionKey, FetchPartition] = {}

    def key(self, wanted: FetchPartition) -> PartitionKey:
        return (wanted.topic_id if self.uses_topic_ids else wanted.topic or "", wanted.partition)

    def advance_epoch(self, now_ms: int) -> None:
        """Advance the epoch after a valid request."""
        self.last_used_ms = now_ms
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def move_to_end(self, wanted: FetchPartition) -> None:
        """Move partitions that returned data to the end, so that others are read first."""
        key = self.key(wanted)
        if key in self.partitions:
            self.partitions[key] = self.partitions.pop(key)


class FetchContext:
    """The plan of one fetch request, and the selection of rows for its response."""

    __slots__ = ("_session", "incremental", "plan", "session_id")

    def __init__(
        self, plan: list[FetchPartition], session: FetchSession | None, incremental: bool
    ) -> None:
        self.plan = plan
        self.session_id = session.session_id if session is not None else NO_SESSION
        self.incremental = incremental
        self._session = session

    def choose(self, results: Sequence[FetchResult]) -> Sequence[FetchResult]:
        """Select the rows to send, in order. A full fetch sends all."""
        session = self._session
        if session is None:
            return results
        chosen = []
        for result in results:
            if result.must_send() or not self.incremental:
                chosen.append(result)
            if result.size_bytes:
                session.move_to_end(result.wanted)
        return chosen


class FetchSessionCache:
    """All sessions of a broker, at most `slots` of them. Large sessions have at most
    `partitions_max` partitions together, counted separately for consumers and brokers. Kafka limits
    slots only, so 1,000 requests of 1 MB would take 16 GB. A client without a session names all
    partitions in each request.
    """

    def __init__(self, slots: int, random: Random, partitions_max: int = PARTITIONS_MAX) -> None:
        self._slots = slots
        self._partitions_max = partitions_max
        self._random = random
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        """The session with that id, if it still exists."""
        return self._sessions.get(session_id)

    def open(
        self,
        session_id: int,
        session_epoch: int,
        wanted: list[FetchPartition],
        forgotten: Iterable[PartitionKey],
        *,
        uses_topic_ids: bool,
        privileged: bool,
        now_ms: int,
    ) -> FetchContext:
        """Turn a request into a context.

        Raises:
            ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
                FETCH_SESSION_TOPIC_ID_ERROR, all top-level.
        """
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            session = None
            if session_epoch == INITIAL_EPOCH and wanted:
                session = self._create(wanted, uses_topic_ids, privileged, now_ms)
            return FetchContext(wanted, session, incremental=False)
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids and (wanted or session.partitions):
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if wanted and self._is_full(session, wanted):
            # The client opens a new session, or has none if there is still no room.
            del self._sessions[session_id]
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._apply(session, wanted, forgotten)
        if not session.partitions:
            del self._sessions[session_id]
            return FetchContext([], None, incremental=True)
        session.advance_epoch(now_ms)
        return FetchContext(list(session.partitions.values()), session, incremental=True)

    def remove(self, context: FetchContext) -> None:
        """Remove the session that a full fetch created, because its response has no session id."""
        self._sessions.pop(context.session_id, None)

    def _is_full(self, session: FetchSession, wanted: list[FetchPartition]) -> bool:
        """Whether new partitions of a session would exceed the limit."""
        known = session.partitions
        if len(known) + len(wanted) <= _SMALL_SESSION_MAX:
            return False
        more = sum(session.key(item) not in known for item in wanted)
        return more > 0 and self._count_partitions(session.privileged) + more > self._partitions_max

    def _count_partitions(self, privileged: bool) -> int:
        sessions = self._sessions.values()
        return sum(len(s.partitions) for s in sessions if s.privileged == privileged)

    def _apply(
        self,
        session: FetchSession,
        wanted: list[FetchPartition],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        for item in wanted:
            key = session.key(item)
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = item
                session.change_count += 1
            else:
                known.update(item)
        for key in forgotten:
            session.partitions.pop(key, None)
            session.change_count += 1

    def _create(
        self, wanted: list[FetchPartition], uses_topic_ids: bool, privileged: bool, now_ms: int
    ) -> FetchSession | None:
        if not self._try_evict(len(wanted), privileged, now_ms):
            return None
        session_id = self._random.below(EPOCH_MAX) + 1
        while session_id in self._sessions:
            session_id = self._random.below(EPOCH_MAX) + 1
        session = FetchSession(session_id, privileged, uses_topic_ids, now_ms)
        session.partitions = {session.key(item): item for item in wanted}
        self._sessions[session_id] = session
        return session

    def _has_room(self, size: int, privileged: bool) -> bool:
        """Whether a new session may have `size` partitions."""
        return (
            size <= _SMALL_SESSION_MAX
            or self._count_partitions(privileged) + size <= self._partitions_max
        )

    def _try_evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Evict one session if all slots are taken: an idle one, else a smaller one that is not
        new. A privileged session evicts an unprivileged one of any size and age. If there are too
        many partitions, all idle sessions are evicted: those of clients that restarted.
        """
        if not self._has_room(size, privileged):
            for session in list(self._sessions.values()):
                if now_ms - session.last_used_ms > EVICTION_IDLE_MS:
                    del self._sessions[session.session_id]
            if not self._has_room(size, privileged):
                return False
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda s: s.last_used_ms)
        victim = oldest if now_ms - oldest.last_used_ms > EVICTION_IDLE_MS else None
        if victim is None:
            candidates = [s for s in self._sessions.values() if privileged or not s.privileged]
            smaller = [
                s
                for s in candidates
                if (s.privileged, len(s.partitions)) < (privileged, size)
                and (privileged != s.privileged or now_ms - s.created_ms > EVICTION_IDLE_MS)
            ]
            victim = min(smaller, key=lambda s: (s.privileged, len(s.partitions)), default=None)
        if victim is None:
            return False
        del self._sessions[victim.session_id]
        return True


def has_unknown_topic_id(wanted: FetchPartition) -> bool:
    """Whether the row has a topic id that is not in this broker's metadata yet."""
    return wanted.topic is None and wanted.topic_id != ZERO_UUID
