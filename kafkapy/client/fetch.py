"""Fetches raw record batches of a range of offsets from the leader. With `client.rack`, fetches
them from the replica that the leader names (KIP-392).

For readers that decode batches themselves (Spark): no group, no session. Whole v2 batches are a
view of the response; the caller drops records outside its range. The next fetch is sent before the
caller handles the present one, so that the broker works at the same time: at most one response
waits in the socket, in the kernel's memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.client.offsets import EARLIEST_LOCAL_TIMESTAMP
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkapy.record.batch_header import iter_headers

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
FETCH_BYTES_MAX: Final = 4 << 20
"""Large enough to make round trips rare. A larger response takes more memory, and less of it is in
the processor's cache when it is decoded."""

MAX_WAIT_MS: Final = 500
_CONSUMER: Final = -1
# Another broker may be the leader, or this one has just started and does not know its topics yet.
_OTHER_RETRIED_ERRORS: Final = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
# From version 13 on, requests have topic ids (KIP-516); topics without one are fetched by name.
_LAST_VERSION_BY_NAME: Final = 12
_FIRST_VERSION: Final = 4


@dataclass(slots=True)
class FetchedBatches:
    """Whole batches, as on disk.

    `aborted_transactions` has (producer id, first offset), with READ_COMMITTED. `next_offset` is
    the start offset of the following fetch.
    """

    buffer: memoryview
    aborted_transactions: list[tuple[int, int]]
    high_watermark: int
    next_offset: int


def fetch_batches(
    cluster: Cluster,
    topic_partition: TopicPartition,
    start_offset: int,
    end_offset: int,
    *,
    max_bytes: int = FETCH_BYTES_MAX,
    isolation_level: int = READ_UNCOMMITTED,
    deadline_ms: int | None = None,
) -> Iterator[FetchedBatches]:
    """Yield every batch with records in [start_offset, end_offset), in order.

    At most `max_bytes` are held at a time (except for one larger batch), and as many more are
    fetched ahead. Offsets without records, after compaction or deletion, are skipped.
    `deadline_ms`, on the clock of `time.monotonic`, bounds the whole range; without it each fetch
    without progress is bounded by the API timeout.

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION by the cluster's metadata,
            REQUEST_TIMED_OUT when the range does not become readable in time, and other errors of
            the leader, except those of a move.
    """
    offset, reason = start_offset, ""
    ahead: _PendingFetch | None = None
    fetcher = _Fetcher(cluster, topic_partition, max_bytes, isolation_level, cluster.client_rack)
    api_timeout_ms = cluster.api_timeout_ms
    limit_ms = deadline_ms or _now_ms() + api_timeout_ms
    try:
        while offset < end_offset:
            if _now_ms() >= limit_ms:
                raise ApiError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{topic_partition}: offsets {offset} to {end_offset} did not become readable"
                    f"{reason}",
                )
            pending, ahead = ahead or fetcher.prepare(offset, limit_ms), None
            partition, throttled = fetcher.fetch(pending, offset)
            if partition is None or isinstance(partition, ApiError):
                reason = "" if partition is None else f": {partition.message}"
                continue
            fetched = _whole_batches(partition, offset, isolation_level)
            if fetched is None:
                readable = min(end_offset, _readable_end(partition, isolation_level))
                if readable > offset and not throttled and fetcher.is_gap(pending.broker, offset):
                    offset = readable
                continue
            offset = fetched.next_offset
            if offset < end_offset:
                ahead = fetcher.prepare(offset, limit_ms)
                ahead.send_ahead(cluster)
            yield fetched
            limit_ms, reason = deadline_ms or _now_ms() + api_timeout_ms, ""
    finally:
        if ahead is not None:  # the caller stopped before the end
            cluster.drop_ahead(ahead.request, ahead.broker)


class _PendingFetch(NamedTuple):
    """A fetch, with its broker and its versions."""

    broker: int
    request: FetchRequest
    max_version: int | None

    def send_ahead(self, cluster: Cluster) -> None:
        """Send the fetch. `receive` waits for the response."""
        cluster.request_ahead(
            self.request, self.broker, min_version=_FIRST_VERSION, max_version=self.max_version
        )

    def receive(self, cluster: Cluster) -> Any:
        """Wait for the response. Sends the fetch first if needed."""
        return cluster.request(
            self.request,
            broker_id=self.broker,
            timeout_ms=cluster.request_timeout_ms + self.request.max_wait_ms,
            min_version=_FIRST_VERSION,
            max_version=self.max_version,
        )


@dataclass(slots=True)
class _Fetcher:
    """Fetches of one partition from its leader, or from the replica that the leader has named for a
    rack. After a failure of that replica, fetches go to the leader without the rack, because the
    leader would name the same replica again.
    """

    cluster: Cluster
    topic_partition: TopicPartition
    max_bytes: int
    isolation_level: int
    rack: str
    replica: int | None = None

    def prepare(self, offset: int, limit_ms: int) -> _PendingFetch:
        """A fetch that has not been sent."""
        topic, index = self.topic_partition
        leader = self.cluster.leader_of(self.topic_partition)
        topic_id = self.cluster.metadata([topic]).topics[topic].topic_id
        wanted = FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=self.max_bytes,
            log_start_offset=-1,
        )
        request = FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=max(0, min(MAX_WAIT_MS, limit_ms - _now_ms())),
            min_bytes=1,
            max_bytes=self.max_bytes,
            isolation_level=self.isolation_level,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
            rack_id=self.rack,
        )
        broker = leader if self.replica is None else self.replica
        max_version = _LAST_VERSION_BY_NAME if topic_id == ZERO_UUID else None
        return _PendingFetch(broker, request, max_version)

    def fetch(self, pending: _PendingFetch, offset: int) -> tuple[Any | ApiError | None, bool]:
        """The partition's response, and whether a quota applied. None or an error: try again,
        because a quota held the response back, another replica was named, or the broker moved or
        does not respond.
        """
        cluster = self.cluster
        try:
            response = pending.receive(cluster)
            code = ErrorCode(response.error_code)
            if code is ErrorCode.NONE and not response.responses:
                cluster.pause()  # a quota held it back: the response has no row
                return None, True
            if code is ErrorCode.NONE:
                partition = response.responses[0].partitions[0]
                code = ErrorCode(partition.error_code)
            if code is ErrorCode.NONE:
                return self._chosen(partition), response.throttle_time_ms > 0
            failure = ApiError(code)
        except ApiError as error:
            failure = error
        code = failure.code
        if self.replica is not None:
            self.rack, self.replica = "", None
        elif not cluster.is_moved_error(code) and code not in _OTHER_RETRIED_ERRORS:
            raise ApiError(code, f"{self.topic_partition} at offset {offset}: {failure.message}")
        cluster.pause()
        cluster.invalidate_topics([self.topic_partition.topic])
        return failure, False

    def is_gap(self, broker: int, offset: int) -> bool:
        """Whether a broker's response without records means that there are none from `offset` on.

        With tiered storage (KIP-405), a broker sends such a response also while the remote storage
        is slow or throttled, without an error. The leader's local log decides. The local log of a
        follower may start later, so the fetch is repeated at the leader.
        """
        tp = self.topic_partition
        if broker != self.cluster.leader_of(tp):
            self.rack = ""
            return False
        local = self.cluster.list_offsets({tp: EARLIEST_LOCAL_TIMESTAMP})[tp]
        if local.error is ErrorCode.UNSUPPORTED_VERSION:  # no tiered storage
            return True
        if local.error is ErrorCode.NONE and local.offset <= offset:
            return True
        self.cluster.pause()
        return False

    def _chosen(self, partition: Any) -> Any | None:
        """The response, or None if it names another replica."""
        if partition.preferred_read_replica >= 0:
            self.replica = partition.preferred_read_replica
            return None
        if not partition.records:
            self.replica = None  # it may have left the ISR: the leader names one that is in it
        return partition


def _whole_batches(partition: Any, offset: int, isolation_level: int) -> FetchedBatches | None:
    """The response without an incomplete last batch; None if it has no records from `offset` on."""
    records = memoryview(partition.records or b"")
    end, next_offset = 0, offset
    for position, header in iter_headers(records):
        end, next_offset = position + header.size, header.next_offset
    if next_offset <= offset:
        return None
    aborted = partition.aborted_transactions if isolation_level == READ_COMMITTED else None
    return FetchedBatches(
        records[:end],
        [(a.producer_id, a.first_offset) for a in aborted or ()],
        partition.high_watermark,
        next_offset,
    )


def _readable_end(partition: Any, isolation_level: int) -> int:
    if isolation_level == READ_COMMITTED:
        return int(partition.last_stable_offset)
    return int(partition.high_watermark)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
