"""Reads partitions for consumers and followers, under one byte budget for each fetch.

A fetch with too few bytes waits. As `kafka.server.ReplicaManager.fetchMessages` and `readFromLog`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.replication.delayed_fetch import DelayedFetch, FetchParams, FetchWait
from kafkapy.replication.fetch_session import FetchPartition, FetchResult, has_unknown_topic_id
from kafkapy.replication.partition import CONSUMER, Partition
from kafkapy.replication.replica_selector import (
    RACK_AWARE_SELECTOR,
    ReplicaView,
    select_in_rack,
)
from kafkapy.server.network.file_region_sender import hold_regions
from kafkapy.server.requests.turns import ROW_UNITS, Work, chunks

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.replicas.replica_manager import ReplicaManager


class FetchReader:
    """Serves fetch plans from the partitions of a replica manager.

    `replica_selector` is the broker's `replica.selector.class`.
    """

    def __init__(self, replicas: ReplicaManager, clock: Clock, replica_selector: str = "") -> None:
        self._replicas = replicas
        self._clock = clock
        self._is_rack_aware = replica_selector == RACK_AWARE_SELECTOR

    def fetch(
        self,
        params: FetchParams,
        plan: list[FetchPartition],
        answer: Callable[[list[FetchResult]], None],
    ) -> DelayedFetch | None:
        """Call `answer` with the rows, now or later. Returns the waiting operation if later."""
        results, waits = self._read(params, plan, is_first=True)
        if waits is None or not plan or params.max_wait_ms <= 0:
            self._answer(params, results, answer)
            return None
        now_ms = self._clock.monotonic_ms()
        operation = DelayedFetch(
            now_ms + self.wait_ms(params, len(plan), now_ms),
            params,
            waits,
            lambda: answer(self.read_again(params, plan)),
            partial(self._is_held_back, params),
        )
        purgatory = self._replicas.fetch_purgatory
        keys: list[Hashable] = [wait.partition.topic_partition for wait in waits]
        if params.is_from_follower:
            keys.append(params.replica_id)  # a new leader answers them
            if params.min_bytes <= 1 and not _changed_partitions(waits):
                # No byte is available, or it would have been read. (A consumer's offset may lie
                # beyond the high watermark, which is answered at once.)
                purgatory.watch(operation, keys)
                return operation
        if purgatory.try_complete_else_watch(operation, keys):
            return None
        return operation

    def read_in_slices(
        self, params: FetchParams, plan: list[FetchPartition]
    ) -> Work[list[FetchResult] | None]:
        """The rows of a plan with many partitions; None if `fetch` must wait for more bytes."""
        results: list[FetchResult] = []
        must_answer = params.max_wait_ms <= 0
        bytes_read = 0
        for chunk in chunks(plan):
            rows, waits = self._read(params, chunk, is_first=True, bytes_read=bytes_read)
            bytes_read += sum(row.size_bytes for row in rows)
            must_answer = must_answer or waits is None
            results += rows
            # Other work before the next slice may close the files.
            hold_regions([row.records for row in rows])
            yield ROW_UNITS * len(chunk)
        if not must_answer:
            return None
        self._count(params, results)
        return results

    def read_again(self, params: FetchParams, plan: list[FetchPartition]) -> list[FetchResult]:
        """Read the rows of a plan again, for a fetch whose follower position is noted already."""
        results = self._read(params, plan, is_first=False)[0]
        self._count(params, results)
        return results

    def wait_ms(self, params: FetchParams, partitions: int, now_ms: int) -> int:
        """The time that a fetch waits at most; short while its follower must fetch other partitions
        soon.
        """
        if not params.is_from_follower:
            return params.max_wait_ms
        wait_ms = self._replicas.awaited_followers.wait_ms(params.replica_id, partitions, now_ms)
        return params.max_wait_ms if wait_ms is None else min(wait_ms, params.max_wait_ms)

    def _answer(
        self,
        params: FetchParams,
        results: list[FetchResult],
        answer: Callable[[list[FetchResult]], None],
    ) -> None:
        self._count(params, results)
        answer(results)

    def _count(self, params: FetchParams, results: list[FetchResult]) -> None:
        """Count the bytes of throttled replicas, in sync or not."""
        quota = self._replicas.quotas.leader
        if params.is_from_follower and quota.limit is not None:
            quota.record(
                sum(r.size_bytes for r in results if r.size_bytes and self._is_throttled(r)),
                self._clock.monotonic_ms(),
            )

    def _is_throttled(self, result: FetchResult) -> bool:
        wanted = result.wanted
        partition = self._replicas.partitions.get(wanted.topic or "", {}).get(wanted.partition)
        if partition is None:  # since it was read, its disk has failed, or it was deleted
            return False
        throttled = partition.log.config.leader_replication_throttled_replicas
        return self._replicas.quotas.leader.covers(throttled, wanted.partition)

    def _is_held_back(self, params: FetchParams, partition: Partition) -> bool:
        """Whether the quota holds a replica back: it is throttled, out of sync, and the quota
        exceeded.
        """
        quota = self._replicas.quotas.leader
        return (
            params.is_from_follower
            and quota.limit is not None
            and params.replica_id not in partition.isr
            and quota.is_exceeded(self._clock.monotonic_ms())
            and quota.covers(
                partition.log.config.leader_replication_throttled_replicas,
                partition.topic_partition.partition,
            )
        )

    def _read(
        self,
        params: FetchParams,
        plan: Sequence[FetchPartition],
        *,
        is_first: bool,
        bytes_read: int = 0,
    ) -> tuple[list[FetchResult], list[FetchWait] | None]:
        """The rows in plan order, and the partitions to wait for; None if the answer must not wait.

        Only the first read of a fetch notes its follower's position. `bytes_read` is the number of
        bytes of the rows that were read before.
        """
        results: list[FetchResult] = []
        readable: list[Partition] = []
        budget = params.max_bytes - bytes_read if bytes_read < params.max_bytes else 0
        total = bytes_read
        now_ms = self._clock.monotonic_ms()
        for wanted in plan:
            min_one = total == 0 and params.min_one_batch
            result, partition = self._read_one(params, wanted, budget, min_one, is_first, now_ms)
            results.append(result)
            total += result.size_bytes
            budget = max(0, budget - result.size_bytes)
            if partition is not None:
                readable.append(partition)
        if total >= params.min_bytes or len(readable) < len(plan):
            return results, None
        try:
            return results, [
                FetchWait(partition, wanted, partition.log.offset_metadata(wanted.fetch_offset))
                for partition, wanted in zip(readable, plan, strict=True)
            ]
        except ApiError:
            return results, None  # the rows so far; the client retries
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            return self._read(params, plan, is_first=False, bytes_read=bytes_read)

    def _read_one(
        self,
        params: FetchParams,
        wanted: FetchPartition,
        budget: int,
        min_one_message: bool,
        is_first: bool,
        now_ms: int,
    ) -> tuple[FetchResult, Partition | None]:
        """One partition's row. Without a partition, the row has an error and the answer does not
        wait.
        """
        replicas = self._replicas
        try:
            if wanted.topic is None:
                # Never resolved here: a resolved topic must be authorized.
                code = ErrorCode.UNKNOWN_TOPIC_ID
                raise ApiError(
                    code if has_unknown_topic_id(wanted) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            partition = replicas.get(wanted.topic, wanted.partition)
            if wanted.topic_id != partition.topic_id and not wanted.topic_id.is_zero:
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
            if self._is_rack_aware:
                nearest = self._nearest(params, partition, wanted)
                if nearest is not None:
                    return nearest, None
            # No call without a limit, the usual case: a session may have 10,000 partitions.
            held_back = replicas.quotas.leader.limit is not None and self._is_held_back(
                params, partition
            )
            high_watermark = partition.log.high_watermark
            result = partition.read(
                wanted,
                params.replica_id,
                params.isolation,
                0 if held_back else min(wanted.max_bytes, budget),
                min_one_message and not held_back,
                now_ms,
                leader_only=params.leader_only,
                updates_follower=is_first,
            )
        except ApiError as refusal:
            return FetchResult(wanted, int(refusal.code)), None
        except LogDirFailure as failure:
            replicas.log_dir_failed(failure)
            return FetchResult(wanted, int(ErrorCode.KAFKA_STORAGE_ERROR)), None
        if result.diverging_epoch is not None:
            return result, None
        if is_first and params.is_from_follower:
            epoch = params.replica_epoch
            replicas.on_follower_fetch(partition, params.replica_id, high_watermark, epoch)
        return result, partition

    def _nearest(
        self, params: FetchParams, partition: Partition, wanted: FetchPartition
    ) -> FetchResult | None:
        """A row that redirects a consumer to a replica in its rack (KIP-392), if there is one.

        Raises:
            ApiError: the consumer's leader epoch is not this leader's.
        """
        if not params.rack or params.replica_id != CONSUMER:
            return None
        if params.leader_only or not partition.is_leader:
            return None
        brokers = self._replicas.live_brokers

        def view(broker_id: int, end_offset: int, caught_up_ms: int) -> ReplicaView | None:
            broker = brokers.get(broker_id)
            if broker is None or broker.endpoint(params.listener) is None:
                return None
            return ReplicaView(broker_id, broker.rack, end_offset, caught_up_ms)

        leader = view(partition.local_id, partition.log.log_end_offset, 0)
        others = (
            view(r.broker_id, r.log_end_offset, r.last_caught_up_ms)
            for r in partition.read_replicas(wanted.fetch_offset)
        )
        if leader is None:
            return None
        chosen = select_in_rack(params.rack, leader, [r for r in others if r is not None])
        if chosen == partition.local_id:
            return None
        partition.check_leader(wanted.current_leader_epoch)
        log = partition.log
        result = FetchResult(wanted)
        result.preferred_read_replica = chosen
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log.log_start_offset
        return result


def _changed_partitions(waits: Sequence[FetchWait]) -> list[FetchWait]:
    """The partitions that have new records since they were read, or are no longer served. The
    follower's position in a partition may commit a record, after which a coordinator appends
    another one. That append may detect a failed log directory."""
    return [
        wait
        for wait in waits
        if wait.partition.log.local.log_end_offset > wait.wanted.fetch_offset
        or not wait.partition.is_served
    ]
