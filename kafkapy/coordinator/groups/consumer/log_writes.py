"""Writing a consumer group's changes: one batch a step, and answers that wait for it.

A change takes effect in memory at once, so that the next heartbeat builds on it. The answers to its
heartbeat and to every later heartbeat wait until the batch is replicated. If a batch cannot be
appended, its changes are undone and its heartbeat is refused. If another batch already builds on
it, its records are written again with the next step instead. Until then, no heartbeat is answered
with their contents. To the members this is a lost answer, which the protocol allows for.

If a batch was appended, but not replicated in time, a new leader may not have it. One of its
records is written again too. The replication of a later batch proves that of the earlier ones. The
records of many such batches together would exceed the maximum size of a batch.

If the end of a loaded log is not replicated, the record of the group's epoch is treated in the same
way: it is written again behind all loaded records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import REPLICATED, Token
from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup, Unsaved
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    RecordType,
    Value,
)
from kafkapy.coordinator.groups.core import GROUP_STORE_ERRORS, Core
from kafkapy.coordinator.groups.group import DEAD, Group
from kafkapy.coordinator.groups.group_offsets import UNKNOWN_LOG_OFFSET
from kafkapy.coordinator.groups.messages import Result
from kafkapy.coordinator.outbox import Ticket
from kafkapy.record.builder import RecordData

STORE_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    **GROUP_STORE_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The error code of a heartbeat whose change could not be stored. Other codes are unchanged."""

_LOADED: Final = 0
"""The write number of loaded records, which is lower than those of this coordinator's writes."""


class Changes:
    """The records of one step. Each record is applied to the group when it is added."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.records: dict[bytes, bytes | None] = {}
        self.on_undone: Callable[[int], None] | None = None
        """Called with the time when the changes are undone, if they upgraded a classic group."""
        self.on_stored: Callable[[ErrorCode], None] | None = None
        """Called when the batch is replicated, or with the error if it is not."""
        self._previous_values: dict[ConsumerKey, Value | None] = {}

    def put(self, kind: RecordType, value: Value, name: str = "") -> None:
        """Write a record, and apply it."""
        key = ConsumerKey(kind, self.group.group_id, name)
        self._apply(key, value)
        data = self.group.encode_key(key)
        if data is not None:
            self.records[data] = self.group.encode_value(key, value)

    def erase(self, key: ConsumerKey) -> None:
        """Delete a record."""
        self._apply(key, None)
        data = self.group.encode_key(key)
        if data is not None:
            self.records[data] = None

    def put_all(self) -> None:
        """Write all records of a group that has no records in the log."""
        for key in reversed(self.group.all_keys()):
            value = self.group.value(key)
            if value is not None:
                data = self.group.encode_key(key)
                assert data is not None, "a consumer group's records are all stored"
                self.records[data] = self.group.encode_value(key, value)

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete records of an earlier group with the same id."""
        self.records |= dict.fromkeys(keys)

    def undo(self) -> None:
        """Restore the previous value of every record."""
        for key, value in reversed(self._previous_values.items()):
            self.group.apply(key, value)
        self.group.metadata_version = -1

    def _apply(self, key: ConsumerKey, value: Value | None) -> None:
        self._previous_values.setdefault(key, self.group.value(key))
        self.group.apply(key, value)


class Answer(NamedTuple):
    """The answer to a request, and the answer if its changes cannot be stored."""

    token: Token
    result: Result
    refusal: Callable[[ErrorCode], Result] = ConsumerHeartbeatResult


@dataclass(slots=True, eq=False)
class Write:
    """An append under way, and the requests that wait for it."""

    number: int
    changes: Changes
    rewritten: Mapping[bytes, Unsaved]
    """Records of earlier writes that the log may lack, by key. This write appends them again."""
    waiting: list[tuple[Ticket, Answer]] = field(default_factory=list)

    @property
    def keys(self) -> dict[bytes, None]:
        """The keys of the batch."""
        return dict.fromkeys([*self.rewritten, *self.changes.records])

    @property
    def records(self) -> dict[bytes, bytes | None]:
        """The records of the batch. Records that are written again have their current values."""
        if not self.rewritten:
            return self.changes.records
        return self.changes.group.values_of(self.rewritten) | self.changes.records


def store(core: Core, group: Group, changes: Changes, answer: Answer | None = None) -> None:
    """Append the changes of a step, and answer its request when they are replicated. A step without
    changes waits for the earlier writes that it depends on."""
    consumer = changes.group
    if changes.records or consumer.unsaved:
        _append(core, group, changes)
    if answer is None:
        return
    if consumer.writes:
        consumer.writes[-1].waiting.append((core.outbox.hold(answer.token), answer))
    else:
        core.outbox.reply(answer.token, answer.result)


def mark_loaded_unreplicated(consumer: ConsumerGroup) -> None:
    """Mark the loaded records as unreplicated: the next write includes the group's epoch."""
    key = consumer.encode_key(ConsumerKey(RecordType.GROUP_EPOCH, consumer.group_id))
    assert key is not None, "every group's epoch is stored"
    consumer.unsaved[key] = Unsaved(_LOADED, True)


def mark_loaded_replicated(consumer: ConsumerGroup) -> None:
    """Mark the loaded records as replicated."""
    unsaved = consumer.unsaved.items()
    consumer.unsaved = {key: each for key, each in unsaved if each.number != _LOADED}


def _append(core: Core, group: Group, changes: Changes) -> None:
    consumer = changes.group
    consumer.write_count += 1
    write = Write(consumer.write_count, changes, consumer.unsaved)
    consumer.unsaved = {}
    consumer.writes.append(write)

    def appended(now_ms: int, error: ErrorCode, base_offset: int) -> None:
        consumer.writes.remove(write)
        if error in REPLICATED:
            _remove_replicated(consumer, write)
        elif base_offset != UNKNOWN_LOG_OFFSET:
            first = next(iter(write.keys))
            _add_unsaved(consumer, {first: Unsaved(write.number, True)})
        elif consumer.write_count == write.number and group.state is not DEAD:
            _undo(core, now_ms, write)
        else:
            _add_unsaved(consumer, dict.fromkeys(write.keys, Unsaved(write.number, False)))
        if error is ErrorCode.NONE and _follows_gap(consumer, write):
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if changes.on_stored is not None:
            changes.on_stored(error)
        for ticket, answer in write.waiting:
            refused = error is not ErrorCode.NONE
            result = answer.refusal(STORE_ERRORS.get(error, error)) if refused else answer.result
            core.outbox.answer(ticket, result)

    time_ms = core.clock.time_ms()
    batch = [RecordData(key, value, time_ms) for key, value in write.records.items()]
    leader_epoch = core.registry.leader_epoch(group)
    core.outbox.append(group.partition, leader_epoch, batch, appended)


def _undo(core: Core, now_ms: int, write: Write) -> None:
    changes = write.changes
    deadlines.cancel_all(core, changes.group)
    changes.undo()
    _add_unsaved(changes.group, write.rewritten)
    if changes.on_undone is None:
        deadlines.start_timers(core, now_ms, changes.group)
    else:
        changes.on_undone(now_ms)


def _add_unsaved(consumer: ConsumerGroup, records: Mapping[bytes, Unsaved]) -> None:
    """Add records to be written again. Of two writes of a key, the later one counts."""
    for key, unsaved in records.items():
        known = consumer.unsaved.get(key)
        if known is None or known.number < unsaved.number:
            consumer.unsaved[key] = unsaved


def _remove_replicated(consumer: ConsumerGroup, write: Write) -> None:
    """Remove unsaved records that are now replicated: those of `write` and those appended
    before."""
    if not consumer.unsaved:
        return
    keys = write.keys
    consumer.unsaved = {
        key: unsaved
        for key, unsaved in consumer.unsaved.items()
        if unsaved.number > write.number or not (unsaved.is_in_log or key in keys)
    }


def _follows_gap(consumer: ConsumerGroup, write: Write) -> bool:
    """Whether the write builds on records that are not in the log."""
    return any(unsaved.number < write.number for unsaved in consumer.unsaved.values())
