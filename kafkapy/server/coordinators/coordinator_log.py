"""A coordinator's topic on this broker: appends that are reported after replication, and the replay
of partitions that this broker starts to lead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Append
from kafkapy.record.batch_header import Buffer, iter_headers
from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.replication.partition import Partition
from kafkapy.server.counts.request_times import RequestTimes
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.storage.damage import Batches, valid_batches
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.log_append import AppendOrigin

LATEST_PRODUCE_VERSION: Final = 11
_SHORTAGE_DELAY_S: Final = 0.1
_SLICE_BYTES: Final = 256 * 1024  # of records replayed at a time: some 20 ms

CallLater = Callable[[float, Callable[[], None]], asyncio.TimerHandle]
OnAppend = Callable[[ErrorCode, int], None]
"""Called with (error, base offset or -1)."""


@dataclass(slots=True)
class _Load:
    """The progress of a partition's replay."""

    partition: Partition
    offset: int
    began_ms: int
    replay: Callable[[int, Buffer], None]
    on_finish: Callable[[Partition, int], None]


def append_and_wait(
    replicas: ReplicaManager,
    topic_partition: TopicPartition,
    batch: bytes,
    acks: int,
    deadline_ms: int,
    on_append: OnAppend,
) -> None:
    """Append a coordinator's batch and call `on_append` once. With acks=all, this is after the
    replication, or at `deadline_ms`."""
    try:
        info, partition = replicas.append(
            *topic_partition, batch, acks, LATEST_PRODUCE_VERSION, AppendOrigin.COORDINATOR
        )
    except ApiError as error:
        on_append(error.code, -1)
        return
    if acks != -1:
        on_append(ErrorCode.NONE, info.first_offset)
        return
    wait = ProduceWait(partition, info.last_offset + 1)
    wait.update_status()
    if not wait.waiting:
        on_append(wait.error, info.first_offset)
        return
    operation = DelayedProduce(
        deadline_ms, [wait], lambda: on_append(wait.error, info.first_offset)
    )
    replicas.produce_purgatory.watch(operation, [topic_partition])


class CoordinatorLog:
    """One coordinator's topic. Fixed: its name, its codec, the timeout of an append, the bytes of a
    read."""

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        clock: Clock,
        call_later: CallLater,
        *,
        codec: Codec,
        timeout_ms: int,
        load_buffer_bytes: int,
        logger: logging.Logger,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._clock = clock
        self._call_later = call_later
        self._codec = codec
        self._timeout_ms = timeout_ms
        self._load_bytes = min(load_buffer_bytes, _SLICE_BYTES)
        self._logger = logger
        self._loads: dict[int, _Load] = {}
        self.load_times = RequestTimes()

    def append(self, append: Append, on_append: OnAppend) -> None:
        """Write one batch and call `on_append` once."""
        try:
            batch = self._batch(append)
        except ApiError as error:
            on_append(error.code, -1)
            return
        append_and_wait(
            self._replicas,
            TopicPartition(self.topic, append.partition),
            batch,
            append.required_acks,
            self._clock.monotonic_ms() + self._timeout_ms,
            on_append,
        )

    def _batch(self, append: Append) -> bytes:
        if append.producer is None:
            return build_batch(append.records, codec=self._codec)
        return build_batch(
            append.records,
            codec=self._codec,
            producer_id=append.producer.producer_id,
            producer_epoch=append.producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )

    def load(
        self,
        partition: Partition,
        replay: Callable[[int, Buffer], None],
        on_finish: Callable[[Partition, int], None],
    ) -> None:
        """Pass the whole log to `replay`, slice by slice, then call `on_finish` with the partition
        and the log end offset. Other work runs on the event loop between the slices."""
        index = partition.topic_partition.partition
        began_ms = self._clock.monotonic_ms()
        load = _Load(partition, partition.log.log_start_offset, began_ms, replay, on_finish)
        self._loads[index] = load
        self._load_slice(load, index)

    def _load_slice(self, load: _Load, index: int) -> None:
        if self._loads.get(index) is not load:
            return
        log, epoch = load.partition.log, load.partition.leader_epoch
        try:
            end = log.log_end_offset
            if load.offset < end:
                found = self._next_batches(load, index, end)
                load.replay(index, found.records)
                load.offset = found.next_offset
            if load.offset < end:
                self._call_later(0, lambda: self._load_slice(load, index))
                return
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            return
        except StorageShortage as shortage:
            self._logger.warning("Loading %s-%d goes on later: %s", self.topic, index, shortage)
            self._call_later(_SHORTAGE_DELAY_S, lambda: self._load_slice(load, index))
            return
        del self._loads[index]
        self.load_times.add((self._clock.monotonic_ms() - load.began_ms) / 1000)
        if load.offset > log.log_start_offset:
            self._logger.info(
                "Finished loading %s-%d up to offset %d, epoch %d",
                self.topic,
                index,
                load.offset,
                epoch,
            )
        load.on_finish(load.partition, load.offset)

    def when_replicated(
        self, partition: Partition, end_offset: int, on_replicated: Callable[[], None]
    ) -> None:
        """Call `on_replicated` when the high watermark has reached `end_offset`, unless this broker
        loses the leadership of the partition before."""
        wait = ProduceWait(partition, end_offset)
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms

        def settled() -> None:
            if partition.log.high_watermark >= end_offset:
                on_replicated()
            elif wait.waiting and self._clock.monotonic_ms() >= deadline_ms:
                self.when_replicated(
                    partition, end_offset, on_replicated
                )  # earlier, the broker stops

        operation = DelayedProduce(deadline_ms, [wait], settled)
        key = partition.topic_partition
        self._replicas.produce_purgatory.try_complete_else_watch(operation, [key])

    def _next_batches(self, load: _Load, index: int, end: int) -> Batches:
        """The next batches of a load. Damaged or unreadable parts of the log are logged and
        skipped.

        Raises:
            LogDirFailure: the disk fails.
            StorageShortage: try again later.
        """
        log = load.partition.log
        # DeleteRecords may have moved the start meanwhile.
        offset = max(load.offset, log.log_start_offset)
        try:
            records = log.read(offset, self._load_bytes, end, True).records
            found = valid_batches(records, offset, end)
            if found.records:
                return found
            damage = found.damage
            if not damage:
                return found._replace(next_offset=end)
        except StorageShortage:
            raise
        except ApiError as error:
            damage = error.message
        found = log.batches_after_damage(offset, end)
        first = found.next_offset
        for _, header in iter_headers(found.records):
            first = header.base_offset
            break
        self._logger.error(
            "Error loading %s-%d at offset %d: %s; what lies before offset %d is skipped",
            self.topic,
            index,
            offset,
            damage,
            first,
        )
        return found

    def cancel_load(self, index: int) -> None:
        """Cancel the load of a partition that this broker no longer leads."""
        self._loads.pop(index, None)

    def stop(self) -> None:
        """Cancel all loads."""
        self._loads.clear()
