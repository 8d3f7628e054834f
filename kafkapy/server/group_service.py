"""The shell of the group coordinator: tokens to answers, appends to `__consumer_offsets`, timers,
loading.

All decisions are `coordinator.group_coordinator`'s. What this adds: an append is a produce with
acks=all to a local partition, reported back when it is replicated; a partition that this broker
comes to lead is replayed from its log before its groups are served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.group_coordinator import GroupCoordinator
from kafkapy.coordinator.messages import Append, Effects
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import build_batch
from kafkapy.record.compression import Codec
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.replication.partition import Partition
from kafkapy.server.request import Pending
from kafkapy.storage.log_append import AppendOrigin

if TYPE_CHECKING:
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.replica_manager import ReplicaManager
    from kafkapy.zk.store import ZkStore

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

_LATEST_PRODUCE_VERSION: Final = 11
_SLICE_BYTES: Final = 256 * 1024  # of records replayed in one go: some 20 ms


@dataclass(slots=True)
class _Load:
    """How far the replay of a partition is."""

    partition: Partition
    offset: int


class GroupService:
    """Drives one `GroupCoordinator` on the event loop.

    `call` runs a request through it; `on_leadership` follows the partitions of
    `__consumer_offsets`.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        replicas: ReplicaManager,
        clock: Clock,
        config: KafkaConfig,
        call_later: Callable[[float, Callable[[], None]], asyncio.TimerHandle],
    ) -> None:
        self.coordinator = coordinator
        self._replicas = replicas
        self._clock = clock
        self._codec = Codec(config.get_int("offsets.topic.compression.codec"))
        self._commit_timeout_ms = config.get_int("offsets.commit.timeout.ms")
        self._load_bytes = min(config.get_int("offsets.load.buffer.size"), _SLICE_BYTES)
        self._loads: dict[int, _Load] = {}
        self._call_later = call_later
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0

    def call(
        self,
        method: Callable[[int, Any, Any], Effects],
        request: Any,
        to_response: Callable[[Any], Any],
    ) -> Any:
        """Run one request; its response, or the `Pending` of one that must wait."""
        token = _Token(to_response)
        token.on_abandon = lambda: self.coordinator.forget_token(token)
        self._perform(method(self._clock.monotonic_ms(), token, request))
        return token.response if token.done else token

    def run(self, step: Callable[[int], Effects]) -> None:
        """Perform the effects of a step that no client asked for."""
        self._perform(step(self._clock.monotonic_ms()))

    async def start(self, store: ZkStore) -> None:
        """Count the partitions of `__consumer_offsets`, before any is led: the config only says
        how many a topic that is not there yet will have."""
        topic = await store.topics.get(GROUP_METADATA_TOPIC)
        if topic is not None:
            self.coordinator.set_num_partitions(len(topic.assignment))

    # leadership of __consumer_offsets partitions

    def on_leadership(self, partition: Partition, leads: bool) -> None:
        """Load or unload the groups of a partition of `__consumer_offsets`."""
        topic, index = partition.topic_partition
        if topic != GROUP_METADATA_TOPIC:
            return
        if leads:
            self._load(partition, index)
        else:
            self._loads.pop(index, None)
            self.run(lambda now_ms: self.coordinator.unload(index, partition.leader_epoch))

    def _load(self, partition: Partition, index: int) -> None:
        if self.coordinator.start_loading(index, partition.leader_epoch):
            load = self._loads[index] = _Load(partition, partition.log.log_start_offset)
            self._load_slice(load, index)

    def _load_slice(self, load: _Load, index: int) -> None:
        """Replay the next batches; the event loop serves others before those that follow."""
        if self._loads.get(index) is not load:
            return
        log, epoch = load.partition.log, load.partition.leader_epoch
        try:
            end = log.log_end_offset
            if load.offset < end:
                records = log.read(load.offset, self._load_bytes, end, True).records
                headers = [header for _, header in iter_headers(records)]
                self.coordinator.replay_batches(index, records)
                load.offset = headers[-1].next_offset if headers else end
            if load.offset < end:
                self._call_later(0, lambda: self._load_slice(load, index))
                return
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            return
        except ApiError as error:
            logger.error(
                "Error loading offsets from %s-%d at offset %d: %s; the groups of what follows are"
                " not known",
                GROUP_METADATA_TOPIC,
                index,
                load.offset,
                error.message,
            )
        del self._loads[index]
        if load.offset > log.log_start_offset:
            logger.info(
                "Finished loading offsets and group metadata from %s-%d up to offset %d, epoch %d",
                GROUP_METADATA_TOPIC,
                index,
                load.offset,
                epoch,
            )
        self.run(lambda now_ms: self.coordinator.finish_loading(index, now_ms))

    # effects

    def _perform(self, effects: Effects) -> None:
        for token, result in effects.replies:
            token.answer(result)  # type: ignore[attr-defined]
        for append in effects.appends:
            self._append(append)
        self._arm()

    def _append(self, append: Append) -> None:
        topic_partition = TopicPartition(GROUP_METADATA_TOPIC, append.partition)
        try:
            batch = build_batch(append.records, codec=self._codec)
            info, partition = self._replicas.append(
                *topic_partition,
                batch,
                append.required_acks,
                _LATEST_PRODUCE_VERSION,
                AppendOrigin.COORDINATOR,
            )
        except ApiError as error:
            self._appended(append, error.code, -1)
            return
        wait = ProduceWait(partition, info.last_offset + 1)
        operation = DelayedProduce(
            self._clock.monotonic_ms() + self._commit_timeout_ms,
            [wait] if append.required_acks == -1 else [],
            lambda: self._appended(
                append,
                wait.error if append.required_acks == -1 else ErrorCode.NONE,
                info.first_offset,
            ),
        )
        self._replicas.produce_purgatory.try_complete_else_watch(operation, [topic_partition])

    def _appended(self, append: Append, error: ErrorCode, base_offset: int) -> None:
        self.run(
            lambda now_ms: self.coordinator.append_completed(
                now_ms, append.append_id, error, base_offset
            )
        )

    # timers

    def _arm(self) -> None:
        due_ms = self.coordinator.next_deadline_ms()
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.monotonic_ms())
        self._timer = self._call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.run(self.coordinator.on_time)

    def stop(self) -> None:
        """Answer who waits with NOT_COORDINATOR, and serve nobody from now on."""
        self._loads.clear()
        self._perform(self.coordinator.shutdown())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Token(Pending):
    """A parked group request: completes with the response made from the coordinator's result."""

    __slots__ = ("_to_response",)

    def __init__(self, to_response: Callable[[Any], Any]) -> None:
        super().__init__()
        self._to_response = to_response

    def answer(self, result: Any) -> None:
        self.complete(self._to_response(result))
