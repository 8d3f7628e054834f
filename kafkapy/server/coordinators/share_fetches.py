"""Fetches of share groups: members acquire records from the partitions in their session.

A fetch with nothing to acquire waits, as other fetches do, until records are appended or released.
Kafka: `DelayedShareFetch`, `ShareFetchUtils`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import MAGIC, iter_headers
from kafkapy.replication.partition import CONSUMER, READ_COMMITTED, Partition
from kafkapy.replication.purgatory import DelayedOperation
from kafkapy.replication.shares.share_partition import AcquiredRecords, RecordBatch
from kafkapy.server.coordinators.share_configs import ShareConfigs
from kafkapy.server.coordinators.share_partitions import LeaderSharePartition, SharePartitions

if TYPE_CHECKING:
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.storage.local_log import FetchDataInfo

RECORD_LIMIT_MODE: Final = 1
_CHUNK_BYTES: Final = 256 * 1024
_KEYS_A_PARTITION: Final = 2
"""A waiting fetch is checked when the share partition changes, or the partition itself."""


class ShareFetchPartition(NamedTuple):
    """One partition of a fetch."""

    key: SharePartitionKey
    topic: str


@dataclass(slots=True)
class ShareRow:
    """A partition's acquired records with the batches that contain them, or its error."""

    wanted: ShareFetchPartition
    error: ErrorCode = ErrorCode.NONE
    acquired: Sequence[AcquiredRecords] = ()
    records: bytes | memoryview = b""


@dataclass(slots=True)
class ShareFetchParams:
    """Parameters of a fetch; times in ms, sizes in bytes."""

    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_limit_strict: bool = False


class ShareFetches:
    """Serves the fetches of members."""

    def __init__(
        self, replicas: ReplicaManager, shares: SharePartitions, configs: ShareConfigs, clock: Clock
    ) -> None:
        self._replicas = replicas
        self._shares = shares
        self._configs = configs
        self._clock = clock

    def fetch(
        self,
        params: ShareFetchParams,
        plan: Sequence[ShareFetchPartition],
        refusal: Callable[[ShareFetchPartition], ErrorCode],
        answer: Callable[[list[ShareRow]], None],
    ) -> DelayedOperation | None:
        """Call `answer` with the rows that have records or an error, now or later. Returns the
        waiting operation if later. `refusal` gives the error of a partition before it is read."""
        now_ms = self._clock.monotonic_ms()
        operation = _DelayedShareFetch(self, params, plan, refusal, answer, now_ms)
        keys: list[Hashable] = []
        for wanted in plan:
            keys += [wanted.key, (wanted.topic, wanted.key.partition)]
        purgatory = self._replicas.fetch_purgatory
        if not plan or params.max_wait_ms <= 0:
            operation.on_complete()
            return None
        if purgatory.try_complete_else_watch(operation, keys):
            return None
        return operation

    def available_bytes(self, wanted: ShareFetchPartition, limit: int) -> int | None:
        """The bytes that a member could read, or 1 if `limit` is at most 1. None if there is an
        error to report."""
        try:
            leader_share, partition = self._leader_share(wanted)
            if leader_share.error is not ErrorCode.NONE:
                return None
            if leader_share.shares is None or not leader_share.shares.can_acquire:
                return 0
            isolation = self._configs.isolation(wanted.key.group_id)
            offset = leader_share.shares.next_fetch_offset
            if offset >= partition.upper_bound(CONSUMER, isolation):
                return 0
            if limit <= 1:
                return 1
            start = partition.log.offset_metadata(offset)
            end = partition.upper_bound_metadata(CONSUMER, isolation)
        except (ApiError, LogDirFailure):
            return None
        if end.segment_base_offset != start.segment_base_offset:
            return limit
        return end.position - start.position

    def read(
        self,
        params: ShareFetchParams,
        plan: Sequence[ShareFetchPartition],
        refusal: Callable[[ShareFetchPartition], ErrorCode],
    ) -> list[ShareRow]:
        """Acquire the available records, up to the limits."""
        rows: list[ShareRow] = []
        records, size = params.max_records, params.max_bytes
        for wanted in plan:
            if records <= 0 or size <= 0:
                break
            error = refusal(wanted)
            if error is not ErrorCode.NONE:
                rows.append(ShareRow(wanted, error))
                continue
            row = self._read(params, wanted, records, size, is_first=not rows)
            if row is not None:
                rows.append(row)
                records -= sum(each.last - each.first + 1 for each in row.acquired)
                size -= len(row.records)
        return rows

    def _read(
        self,
        params: ShareFetchParams,
        wanted: ShareFetchPartition,
        max_records: int,
        max_bytes: int,
        *,
        is_first: bool,
    ) -> ShareRow | None:
        try:
            leader_share, partition = self._leader_share(wanted)
            if leader_share.error is not ErrorCode.NONE:
                raise ApiError(self._shares.take_error(leader_share))
            shares = leader_share.shares
            if shares is None or not shares.can_acquire:
                return None
            isolation = self._configs.isolation(wanted.key.group_id)
            offset, end = shares.next_fetch_offset, partition.upper_bound(CONSUMER, isolation)
            if offset >= end:
                return None
            # In chunks: clients allow for 50 MB, and get 500 records.
            batches, free, position = _Batches(), 0, offset
            while free < max_records and position < end and batches.size < max_bytes:
                budget = max_bytes - batches.size
                try:
                    found = partition.log.read(
                        position, min(budget, _CHUNK_BYTES), end, True, isolation == READ_COMMITTED
                    )
                    if len(found.records) > budget and (batches.rows or not is_first):
                        break
                    added = batches.add(found)
                except ApiError:
                    if batches.rows:
                        break  # the next fetch begins at the damaged batch
                    raise
                if not added:
                    break
                free += shares.available_count(added)
                position = added[-1].last + 1
        except ApiError as refusal:
            return ShareRow(wanted, refusal.code)
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            return ShareRow(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        acquired = shares.acquire(
            self._clock.monotonic_ms(),
            params.member_id,
            offset,
            batches.rows,
            max_records,
            params.batch_size,
            is_limit_strict=params.is_limit_strict,
            aborted=batches.aborted,
        )
        self._shares.set_timer(leader_share)
        if not acquired:
            return None
        return ShareRow(wanted, acquired=acquired, records=batches.cut(acquired))

    def _leader_share(self, wanted: ShareFetchPartition) -> tuple[LeaderSharePartition, Partition]:
        """The share partition of a partition that this broker leads.

        Raises:
            ApiError: this broker does not lead the partition.
        """
        partition = self._replicas.get(wanted.topic, wanted.key.partition)
        if partition.topic_id != wanted.key.topic_id:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition.check_leader(-1)
        return self._shares.find(wanted.key, partition), partition


class _DelayedShareFetch(DelayedOperation):
    """Waits until records can be acquired, or a partition has an error to report."""

    __slots__ = ("_answer", "_fetches", "_params", "_plan", "_refusal")

    def __init__(
        self,
        fetches: ShareFetches,
        params: ShareFetchParams,
        plan: Sequence[ShareFetchPartition],
        refusal: Callable[[ShareFetchPartition], ErrorCode],
        answer: Callable[[list[ShareRow]], None],
        now_ms: int,
    ) -> None:
        super().__init__(now_ms + params.max_wait_ms)
        self._fetches = fetches
        self._params = params
        self._plan = plan
        self._refusal = refusal
        self._answer = answer

    def ready(self) -> bool:
        total, limit = 0, self._params.min_bytes
        for wanted in self._plan:
            found = self._fetches.available_bytes(wanted, limit)
            if found is None:
                return True
            total += found
            if total >= max(limit, 1):
                return True
        return False

    def ready_at(self, position: int) -> bool:
        """Checks the changed partition first. The others were checked when they changed, but a few
        bytes of each may add up to enough.
        """
        limit = self._params.min_bytes
        found = self._fetches.available_bytes(self._plan[position // _KEYS_A_PARTITION], limit)
        return found is None or found >= max(limit, 1) or (found > 0 and self.ready())

    def on_complete(self) -> None:
        self._answer(self._fetches.read(self._params, self._plan, self._refusal))


@dataclass(slots=True)
class _Batches:
    """The complete batches of reads: their offsets and end positions, and the aborted ones."""

    chunks: list[memoryview] = field(default_factory=list)
    rows: list[RecordBatch] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    aborted: list[RecordBatch] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.ends[-1] if self.ends else 0

    def add(self, found: FetchDataInfo) -> list[RecordBatch]:
        """Add the batches of the next read. Returns their offsets.

        Raises:
            ApiError: CORRUPT_MESSAGE: the next batch is damaged. With a wrong last offset, records
                that do not exist would be acquired.
        """
        before, added = self.size, len(self.rows)
        starts = {
            (each.producer_id, each.first_offset) for each in found.aborted_transactions or ()
        }
        open_aborted: set[int] = set()
        try:
            for position, header in iter_headers(found.records):
                validate_crc(found.records, position, header)
                first = header.base_offset
                if header.magic != MAGIC:  # that is the last offset; the first one is compressed
                    read_from = found.fetch_offset_metadata.offset
                    first = self.rows[-1].last + 1 if self.rows else read_from
                row = RecordBatch(first, header.last_offset)
                self.rows.append(row)
                self.ends.append(before + position + header.size)
                if not starts or not header.is_transactional:
                    continue
                producer_id = header.producer_id
                if any(p == producer_id and first <= row.last for p, first in starts):
                    starts = {s for s in starts if s[0] != producer_id or s[1] > row.last}
                    open_aborted.add(producer_id)
                if producer_id in open_aborted:
                    if header.is_control:
                        open_aborted.discard(producer_id)
                    else:
                        self.aborted.append(row)
        finally:
            self.chunks.append(memoryview(found.records)[: self.size - before])
        if len(self.rows) == added and found.records:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, "A batch is longer than its segment")
        return self.rows[added:]

    def cut(self, acquired: Sequence[AcquiredRecords]) -> memoryview:
        """The bytes from the first to the last batch with acquired records."""
        first, last = acquired[0].first, acquired[-1].last
        indexes = [i for i, row in enumerate(self.rows) if row.last >= first and row.first <= last]
        start = self.ends[indexes[0] - 1] if indexes[0] else 0
        records = self.chunks[0] if len(self.chunks) == 1 else memoryview(b"".join(self.chunks))
        return records[start : self.ends[indexes[-1]]]
