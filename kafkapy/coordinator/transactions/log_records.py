"""Keys and values of `__transaction_state`, byte for byte. Kafka: TransactionLogKey/Value.

Values are v0, as Kafka 3.9 writes them, or v1, as Kafka 4 does with transaction version 1 or 2.
Kafka 3.9 reads both: it skips the tagged fields of v1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition, by_topic
from kafkapy.coordinator.compact_fields import (
    NO_TAGS,
    CompactReader,
    compact_array,
    compact_string,
    tagged_fields,
)
from kafkapy.coordinator.record_fields import I16, I32, I64, RecordReader, string_field
from kafkapy.coordinator.transactions.state import (
    EMPTY,
    LAST_EPOCH,
    NO_PRODUCER_ID,
    PREPARE_EPOCH_FENCE,
    Transaction,
    TransactionState,
    Transition,
)

_HEAD: Final = Struct(">hqhib")
"""Version, producer id, its epoch, the timeout, the state."""
_TIMES: Final = Struct(">qq")
_KEY_VERSION: Final = 0
_FLEXIBLE: Final = 1
_NULL: Final = -1
_NULL_COMPACT: Final = b"\0"
_PREVIOUS_PRODUCER_ID: Final = 0
_NEXT_PRODUCER_ID: Final = 1
_CLIENT_VERSION: Final = 2
_STATES: Final = {int(s): s for s in TransactionState if s is not PREPARE_EPOCH_FENCE}


def transaction_key(transactional_id: str) -> bytes:
    """Key bytes of a transactional id."""
    return I16.pack(_KEY_VERSION) + string_field(transactional_id)


def transaction_value(to: Transition, version: int = 0) -> bytes:
    """Value bytes. In the state Empty the list of partitions is null, not empty."""
    assert to.state is not PREPARE_EPOCH_FENCE, "the log knows no fence"
    head = _HEAD.pack(version, to.producer_id, to.producer_epoch, to.timeout_ms, to.state)
    topics = None if to.state is EMPTY else by_topic(sorted(to.partitions))
    times = _TIMES.pack(to.last_update_ms, to.start_ms)
    if version < _FLEXIBLE:
        return head + _partitions(topics) + times
    return head + _compact_partitions(topics) + times + tagged_fields(_tagged(to))


def _partitions(topics: Mapping[str, Sequence[int]] | None) -> bytes:
    if topics is None:
        return I32.pack(_NULL)
    parts = [I32.pack(len(topics))]
    for topic, partitions in topics.items():
        parts += (string_field(topic), I32.pack(len(partitions)))
        parts += map(I32.pack, partitions)
    return b"".join(parts)


def _compact_partitions(topics: Mapping[str, Sequence[int]] | None) -> bytes:
    if topics is None:
        return _NULL_COMPACT
    return compact_array(
        compact_string(topic) + compact_array(map(I32.pack, partitions)) + NO_TAGS
        for topic, partitions in topics.items()
    )


def _tagged(to: Transition) -> dict[int, bytes]:
    """The tagged fields, without those that have their default."""
    tags = {}
    if to.previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID] = I64.pack(to.previous_producer_id)
    if to.next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID] = I64.pack(to.next_producer_id)
    if to.client_version:
        tags[_CLIENT_VERSION] = I16.pack(to.client_version)
    return tags


def read_transaction_key(data: bytes) -> str | None:
    """The transactional id, or None if the key has a version of a later Kafka.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = RecordReader(data, TRANSACTION_STATE_TOPIC)
    return reader.string() if reader.i16() == _KEY_VERSION else None


def read_transaction(transactional_id: str, data: bytes) -> Transaction:
    """The transactional id's state in a record.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version or state that is not known.
    """
    reader = CompactReader(data, TRANSACTION_STATE_TOPIC)
    version = reader.version(_FLEXIBLE)
    found = Transaction(transactional_id, reader.i64(), reader.i16(), timeout_ms=reader.i32())
    state = reader.i8()
    if state not in _STATES:
        raise reader.corrupt(f"the state {state} is not known")
    found.state = _STATES[state]
    if version < _FLEXIBLE:
        for _ in range(reader.i32()):
            topic = reader.string()
            indexes = [reader.i32() for _ in range(reader.i32())]
            found.partitions.update(TopicPartition(topic, index) for index in indexes)
    else:
        reader.compact_array(lambda: _read_topic(reader, found))
    found.last_update_ms, found.start_ms = reader.i64(), reader.i64()
    if version >= _FLEXIBLE:
        _read_tagged(reader, found)
    return found


def _read_topic(reader: CompactReader, found: Transaction) -> None:
    topic = reader.compact_string()
    found.partitions.update(TopicPartition(topic, i) for i in reader.compact_array(reader.i32))
    reader.skip_tags()


def _read_tagged(reader: CompactReader, found: Transaction) -> None:
    fields = {
        tag: RecordReader(data, TRANSACTION_STATE_TOPIC) for tag, data in reader.tags().items()
    }
    if _PREVIOUS_PRODUCER_ID in fields:
        previous = fields[_PREVIOUS_PRODUCER_ID].i64()
        if previous != found.producer_id:
            found.last_producer_id = previous
    if _NEXT_PRODUCER_ID in fields:
        found.next_producer_id = fields[_NEXT_PRODUCER_ID].i64()
    if _CLIENT_VERSION in fields:
        found.client_version = fields[_CLIENT_VERSION].i16()
    if found.has_bumped_epoch:
        found.last_producer_epoch = (found.producer_epoch or LAST_EPOCH) - 1
