"""The share coordinator of one broker: calls in, effects out. It never waits.

As with the group coordinator, its service sends replies, makes appends and reports them with
`append_completed`, and replays the partitions of `__share_group_state` that it starts to lead. It
reports with `replicated_up_to` how much of the loaded log is replicated. It calls `maintain` every
`share.coordinator.state.topic.prune.interval.ms`, and deletes the records before `prunable_offset`.

The requests for one share partition are handled one after the other. A write takes effect when its
record is replicated. A record that is not replicated in time takes effect too, but a new leader may
not have it: a request that only returns this state writes it again. So does one that returns a
loaded state that is not replicated yet. Kafka: `ShareCoordinatorShard`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.share_state import (
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
    StateBatch,
)
from kafkapy.common.topic_partition import (
    SHARE_GROUP_STATE_TOPIC,
    TopicPartition,
    partition_for_key,
)
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.effects import REPLICATED, Token
from kafkapy.coordinator.groups.topic_source import TopicSource
from kafkapy.coordinator.outbox import Outbox
from kafkapy.coordinator.replayed_records import replayed_records
from kafkapy.coordinator.shares.messages import (
    DeleteState,
    InitializeState,
    ReadState,
    ShareEffects,
    StateRequest,
    StateResult,
    WriteState,
)
from kafkapy.coordinator.shares.records import (
    RecordType,
    ShareState,
    ShareUpdate,
    encode_key,
    read_key,
    read_snapshot,
    read_update,
    snapshot_value,
    update_value,
)
from kafkapy.record.batch_header import Buffer
from kafkapy.record.builder import RecordData

STORE_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error code for a request whose record could not be stored. Other codes are unchanged."""


_RECORDS_AT_ONCE: Final = 32
"""The number of records that the maintenance writes in one turn of the event loop: some 5 ms."""
_BATCHES_MAX: Final = 20_000
"""The limit of state batches: twice the maximum of `group.share.partition.max.record.locks`."""


@dataclass(slots=True)
class _Entry:
    """A share partition; the snapshot's offset, and the number of updates since."""

    state: ShareState
    snapshot_offset: int
    updates: int = 0


@dataclass(slots=True)
class _StatePartition:
    """A partition of `__share_group_state` that this broker leads."""

    leader_epoch: int
    loading: bool = True
    entries: dict[SharePartitionKey, _Entry] = field(default_factory=dict)
    end_offset: int = 0
    """The offset after the last record that was written or replayed."""
    unreplicated: dict[SharePartitionKey, int] = field(default_factory=dict)
    """The offset of a share partition's last record, if the record was loaded, or not replicated in
    time. Its replication is not confirmed, so a new leader may lack it."""

    def record_appended(self, key: SharePartitionKey, offset: int, error: ErrorCode) -> None:
        """Note that a record is in the log. If it is replicated, so are the records before it."""
        if error not in REPLICATED:
            self.unreplicated[key] = offset
        else:
            self.replicated_up_to(offset + 1)

    def replicated_up_to(self, end_offset: int) -> None:
        """Note that all records before `end_offset` are replicated."""
        self.unreplicated = {
            k: known for k, known in self.unreplicated.items() if known >= end_offset
        }


class ShareCoordinator:
    """All share partitions whose partition of `__share_group_state` this broker leads."""

    def __init__(
        self,
        config: ShareConfig,
        clock: Clock,
        topics: TopicSource,
    ) -> None:
        self._config = config
        self._clock = clock
        self._topics = topics
        self._log = logging.getLogger(__name__)
        self._num_partitions = config.share_coordinator_state_topic_num_partitions
        self._active = True
        self._partitions: dict[int, _StatePartition] = {}
        self._outbox: Outbox[StateResult] = Outbox()
        self._queues: dict[SharePartitionKey, deque[Callable[[], None]]] = {}
        """Requests that wait for an append of their share partition."""

    # Requests.

    def handle(self, _now_ms: int, token: Token, request: StateRequest) -> ShareEffects:
        """The reply of a request that writes waits for the log."""
        queue = self._queues.get(request.key)
        if queue is None:
            self._handle(token, request)
        else:
            queue.append(partial(self._handle, token, request))
        return self._outbox.take()

    def _handle(self, token: Token, request: StateRequest) -> None:
        try:
            state_partition = self._check(request.key)
            entry = state_partition.entries.get(request.key)
            if isinstance(request, InitializeState):
                self._initialize(token, request, state_partition, entry)
            elif isinstance(request, ReadState):
                self._read(token, request, state_partition, entry)
            elif isinstance(request, WriteState):
                self._write(token, request, entry)
            elif isinstance(request, DeleteState):
                self._delete(token, request, state_partition, entry)
            else:
                self._reply_unchanged(token, request.key, state_partition, _summary(entry))
        except ApiError as refusal:
            self._outbox.reply(token, StateResult(refusal.code, refusal.message))

    def _check(self, key: SharePartitionKey) -> _StatePartition:
        """The partition of a key, if its requests can be handled.

        Raises:
            ApiError: its requests are refused.
        """
        if key.partition < 0:
            message = "The partition id cannot be a negative number."
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        if not self._active:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not self._topics.is_known:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        # Before the hash, which is slow for long group ids: a request has many rows.
        name = self._topics.name_of(key.topic_id)
        topic = None if name is None else self._topics.find(name)
        if topic is None or key.partition >= topic.num_partitions:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state_partition = self._partitions.get(self.partition_for(key))
        if state_partition is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if state_partition.loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return state_partition

    def _initialize(
        self,
        token: Token,
        request: InitializeState,
        state_partition: _StatePartition,
        entry: _Entry | None,
    ) -> None:
        time_ms = self._clock.time_ms()
        if entry is not None:
            if request.state_epoch < entry.state.state_epoch:
                raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
            if request.state_epoch == entry.state.state_epoch:
                # A repeated request. Members may have acknowledged records since.
                self._reply_unchanged(token, request.key, state_partition, StateResult())
                return
        known = None if entry is None else entry.state
        state = ShareState(
            0 if known is None else known.snapshot_epoch + 1,
            request.state_epoch,
            0 if known is None else known.leader_epoch,
            request.start_offset,
            UNKNOWN_COUNT if request.start_offset == UNINITIALIZED_START_OFFSET else 0,
            time_ms if known is None else known.create_ms,
            time_ms,
        )
        self._store_snapshot(request.key, state, token, StateResult())

    def _read(
        self,
        token: Token,
        request: ReadState,
        state_partition: _StatePartition,
        entry: _Entry | None,
    ) -> None:
        if entry is None:
            message = "Read operation on uninitialized share partition not allowed."
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        state = entry.state
        _fence_leader_epoch(request.leader_epoch, state)
        result = StateResult(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            batches=state.batches,
        )
        if request.leader_epoch > state.leader_epoch:
            count = state.delivery_complete_count
            update = ShareUpdate(state.snapshot_epoch, request.leader_epoch, -1, count, ())
            self._store_update(request.key, entry, update, token, result)
        else:
            self._reply_unchanged(token, request.key, state_partition, result)

    def _write(self, token: Token, request: WriteState, entry: _Entry | None) -> None:
        if entry is None:
            message = "Write operation on uninitialized share partition not allowed."
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        state = entry.state
        _fence_leader_epoch(request.leader_epoch, state)
        # A later epoch belongs to a deleted state: the epochs of the next state start over.
        if request.state_epoch != state.state_epoch:
            raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
        _check_batches(state.batches, request.batches)
        update = ShareUpdate(
            state.snapshot_epoch,
            request.leader_epoch,
            request.start_offset,
            request.delivery_complete_count,
            tuple(request.batches),
        )
        self._store_update(request.key, entry, update, token, StateResult())

    def _delete(
        self,
        token: Token,
        request: DeleteState,
        state_partition: _StatePartition,
        entry: _Entry | None,
    ) -> None:
        if entry is None:
            self._reply_unchanged(token, request.key, state_partition, StateResult())
        else:
            self._store_deletion(request.key, token, StateResult())

    def _reply_unchanged(
        self,
        token: Token,
        key: SharePartitionKey,
        state_partition: _StatePartition,
        result: StateResult,
    ) -> None:
        """Answer a request that changes nothing. If a new leader may not have the state, it is
        written again first."""
        if key not in state_partition.unreplicated:
            self._outbox.reply(token, result)
        elif (entry := state_partition.entries.get(key)) is None:
            self._store_deletion(key, token, result)
        else:
            self._store_snapshot(key, self._next_snapshot(entry.state), token, result)

    # The log.

    def _store_update(
        self,
        key: SharePartitionKey,
        entry: _Entry,
        update: ShareUpdate,
        token: Token,
        result: StateResult,
    ) -> None:
        """Write an update, or a snapshot after many updates."""
        state = entry.state.updated(update)
        if entry.updates >= self._config.share_coordinator_snapshot_update_records_per_snapshot:
            self._store_snapshot(key, self._next_snapshot(state), token, result)
            return

        def stored(_offset: int) -> None:
            entry.state = state
            entry.updates += 1

        record = self._record(RecordType.UPDATE, key, update_value(update))
        self._append(key, record, stored, token, result)

    def _store_snapshot(
        self, key: SharePartitionKey, state: ShareState, token: Token | None, result: StateResult
    ) -> None:
        def stored(offset: int) -> None:
            state_partition = self._partitions.get(self.partition_for(key))
            if state_partition is not None:
                state_partition.entries[key] = _Entry(state, offset)

        record = self._record(RecordType.SNAPSHOT, key, snapshot_value(state))
        self._append(key, record, stored, token, result)

    def _store_deletion(
        self, key: SharePartitionKey, token: Token | None, result: StateResult
    ) -> None:
        record = self._record(RecordType.SNAPSHOT, key, None)
        self._append(key, record, lambda _: self._remove_entry(key), token, result)

    def _next_snapshot(self, state: ShareState) -> ShareState:
        epoch = state.snapshot_epoch + 1
        return state._replace(snapshot_epoch=epoch, write_ms=self._clock.time_ms())

    def _record(self, kind: RecordType, key: SharePartitionKey, value: bytes | None) -> RecordData:
        return RecordData(encode_key(kind, key), value, self._clock.time_ms())

    def _append(
        self,
        key: SharePartitionKey,
        record: RecordData,
        stored: Callable[[int], None],
        token: Token | None,
        result: StateResult,
    ) -> None:
        """Append a record, then reply; other requests for the share partition wait. `stored` is
        called with its offset if it is in the log, replicated in time or not."""
        ticket = None if token is None else self._outbox.hold(token)
        index = self.partition_for(key)
        state_partition = self._partitions[index]
        self._queues[key] = deque()

        def appended(_now_ms: int, error: ErrorCode, base_offset: int) -> None:
            if base_offset >= 0 and self._partitions.get(index) is state_partition:
                state_partition.end_offset = max(state_partition.end_offset, base_offset + 1)
                if error is not ErrorCode.NONE or state_partition.unreplicated:
                    state_partition.record_appended(key, base_offset, error)
                stored(base_offset)
            if ticket is not None:
                answer = result
                if error is not ErrorCode.NONE:
                    answer = StateResult(STORE_ERRORS.get(error, error))
                self._outbox.answer(ticket, answer)
            self._run_queue(key)

        self._outbox.append(index, state_partition.leader_epoch, [record], appended)

    def _run_queue(self, key: SharePartitionKey) -> None:
        """Handle the queued requests, until one of them waits for an append."""
        queue = self._queues.pop(key)
        while queue:
            queue.popleft()()
            new_queue = self._queues.get(key)
            if new_queue is not None:
                new_queue.extend(queue)
                return

    def _remove_entry(self, key: SharePartitionKey) -> None:
        state_partition = self._partitions.get(self.partition_for(key))
        if state_partition is not None:
            state_partition.entries.pop(key, None)

    # Maintenance.

    def maintain(self) -> Iterator[ShareEffects]:
        """Write snapshots of unused share partitions, so that older records of others can be
        deleted. Delete the share partitions of deleted topics. There may be other calls between the
        effects."""
        for index, state_partition in list(self._partitions.items()):
            if state_partition.loading or not self._topics.is_known:
                continue
            keys = self._keys_to_maintain(state_partition)
            for start in range(0, len(keys), _RECORDS_AT_ONCE):
                if self._partitions.get(index) is not state_partition:
                    break
                for key in keys[start : start + _RECORDS_AT_ONCE]:
                    self._maintain(state_partition, key)
                yield self._outbox.take()

    def _keys_to_maintain(self, state_partition: _StatePartition) -> list[SharePartitionKey]:
        due_ms = self._clock.time_ms()
        due_ms -= self._config.share_coordinator_cold_partition_snapshot_interval_ms
        entries, name_of = state_partition.entries, self._topics.name_of
        cold = {key for key, entry in entries.items() if entry.state.write_ms <= due_ms}
        if len(cold) == len(entries):
            cold = set()  # their snapshots would supersede nothing else
        return [key for key in entries if key in cold or name_of(key.topic_id) is None]

    def _maintain(self, state_partition: _StatePartition, key: SharePartitionKey) -> None:
        entry = state_partition.entries.get(key)
        if entry is None or key in self._queues:
            return
        if self._topics.name_of(key.topic_id) is None:
            self._store_deletion(key, None, StateResult())
        else:
            self._store_snapshot(key, self._next_snapshot(entry.state), None, StateResult())

    def prunable_offset(self, partition: int) -> int:
        """The offset before which all records of a partition are superseded by later ones. It is 0
        while a new leader may not have all records."""
        state_partition = self._partitions.get(partition)
        if state_partition is None or state_partition.loading or state_partition.unreplicated:
            return 0
        offsets = (entry.snapshot_offset for entry in state_partition.entries.values())
        return min(offsets, default=state_partition.end_offset)

    @property
    def led_partitions(self) -> list[int]:
        """The partitions of `__share_group_state` that are led here."""
        return list(self._partitions)

    def append_completed(
        self, now_ms: int, append_id: int, error: ErrorCode, base_offset: int
    ) -> ShareEffects:
        """Report that an append was acknowledged, or failed."""
        self._outbox.append_completed(now_ms, append_id, error, base_offset)
        return self._outbox.take()

    def next_deadline_ms(self) -> int | None:
        """None: the share coordinator has no deadlines."""
        return None

    def on_time(self, _now_ms: int) -> ShareEffects:
        """Return pending effects; the share coordinator has no deadlines."""
        return self._outbox.take()

    def drop_token(self, token: Token) -> None:
        """Drop the token of a closed connection. Its request continues."""
        self._outbox.drop_token(token)

    # Leading partitions of `__share_group_state`.

    def set_num_partitions(self, num_partitions: int) -> None:
        """Set the number of partitions of `__share_group_state`, before any is led."""
        assert not self._partitions or num_partitions == self._num_partitions, "keys would move"
        self._num_partitions = num_partitions

    def partition_for(self, key: SharePartitionKey | str) -> int:
        """The partition of `__share_group_state` for a share partition, or for its string."""
        return partition_for_key(str(key), self._num_partitions)

    def start_loading(self, partition: int, leader_epoch: int) -> bool:
        """Begin to lead a partition. Returns whether its log must be replayed now. A partition that
        is led already is loaded again at a later epoch: pending appends of the earlier epoch may be
        in the log or not."""
        state_partition = self._partitions.get(partition)
        if state_partition is not None and leader_epoch <= state_partition.leader_epoch:
            return False
        self._partitions[partition] = _StatePartition(leader_epoch)
        self._log.info("Loading share group state from %s-%d", SHARE_GROUP_STATE_TOPIC, partition)
        return True

    def replay_batches(self, partition: int, records: Buffer) -> None:
        """Apply the whole batches of a buffer. Unreadable records are logged and skipped.

        Raises:
            ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
        """
        state_partition = self._partitions[partition]
        topic_partition = TopicPartition(SHARE_GROUP_STATE_TOPIC, partition)
        for header, record in replayed_records(self._log, topic_partition, records):
            state_partition.end_offset = record.offset + 1
            if header.is_control:
                continue
            try:
                _replay(state_partition, record.offset, record.key or b"", record.value)
            except ApiError as error:
                self._log.error(
                    "Skipped the record at offset %d of %s: %s",
                    record.offset,
                    topic_partition,
                    error.message,
                )

    def finish_loading(self, partition: int, _now_ms: int) -> ShareEffects:
        """End the replay of the log and start to serve its share partitions."""
        state_partition = self._partitions[partition]
        state_partition.loading = False
        self._log.info(
            "Finished loading %d share partitions from %s-%d",
            len(state_partition.entries),
            SHARE_GROUP_STATE_TOPIC,
            partition,
        )
        return self._outbox.take()

    def replicated_up_to(self, partition: int, leader_epoch: int, end_offset: int) -> None:
        """Report that the loaded records before `end_offset` are replicated."""
        state_partition = self._partitions.get(partition)
        if state_partition is not None and state_partition.leader_epoch == leader_epoch:
            state_partition.replicated_up_to(end_offset)

    def unload(self, partition: int, leader_epoch: int | None = None) -> ShareEffects:
        """Stop leading a partition. Waiting requests are answered when their appends end."""
        state_partition = self._partitions.get(partition)
        if state_partition is not None and (
            leader_epoch is None or leader_epoch >= state_partition.leader_epoch
        ):
            del self._partitions[partition]
        return self._outbox.take()

    def shutdown(self) -> ShareEffects:
        """Unload all partitions. Later calls are answered COORDINATOR_NOT_AVAILABLE."""
        self._partitions.clear()
        self._active = False
        return self._outbox.take()


def _replay(state_partition: _StatePartition, offset: int, key: bytes, value: bytes | None) -> None:
    found = read_key(key)
    if found is None:
        return
    kind, share_partition = found
    entry = state_partition.entries.get(share_partition)
    if kind is RecordType.SNAPSHOT:
        if value is None:
            state_partition.entries.pop(share_partition, None)
        else:
            state_partition.entries[share_partition] = _Entry(read_snapshot(value), offset)
    elif entry is not None and value is not None:
        entry.state = entry.state.updated(read_update(value))
        entry.updates += 1
    state_partition.unreplicated[share_partition] = offset


def _summary(entry: _Entry | None) -> StateResult:
    if entry is None:
        return StateResult()
    state = entry.state
    return StateResult(
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


def _check_batches(known: Sequence[StateBatch], new: Sequence[StateBatch]) -> None:
    """Require that the batches are valid and in order. Their number is bounded, because they are
    merged in one go."""
    end = -1
    for batch in new:
        if not end < batch.first <= batch.last or batch.delivery_count < 0:
            raise ApiError(ErrorCode.INVALID_REQUEST, "A state batch is invalid.")
        end = batch.last
    if len(known) + len(new) > _BATCHES_MAX:
        message = f"A share partition has at most {_BATCHES_MAX} state batches."
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _fence_leader_epoch(leader_epoch: int, state: ShareState) -> None:
    if leader_epoch < state.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
