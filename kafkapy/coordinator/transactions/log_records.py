"""Keys and values of `__transaction_state`, byte for byte (v0 of both, as Kafka 3.9 writes them).

Classic encodings: big-endian, strings with an i16 length. Kafka: TransactionLogKey/Value.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition, by_topic
from kafkapy.coordinator.record_fields import I16, I32, RecordReader, string_field
from kafkapy.coordinator.transactions.state import (
    EMPTY,
    PREPARE_EPOCH_FENCE,
    Transaction,
    TransactionState,
    Transition,
)

_HEAD: Final = Struct(">hqhib")
"""Version, producer id, its epoch, the timeout, the state."""
_TIMES: Final = Struct(">qq")
_VERSION: Final = 0
_NULL: Final = -1
_STATES: Final = {int(s): s for s in TransactionState if s is not PREPARE_EPOCH_FENCE}


def transaction_key(transactional_id: str) -> bytes:
    """Key bytes of a transactional id."""
    return I16.pack(_VERSION) + string_field(transactional_id)


def transaction_value(to: Transition) -> bytes:
    """Value bytes. In the state Empty the list of partitions is null, not empty."""
    assert to.state is not PREPARE_EPOCH_FENCE, "the log knows no fence"
    parts = [
        _HEAD.pack(_VERSION, to.producer_id, to.producer_epoch, to.timeout_ms, to.state),
    ]
    if to.state is EMPTY:
        parts.append(I32.pack(_NULL))
    else:
        topics = by_topic(sorted(to.partitions))
        parts.append(I32.pack(len(topics)))
        for topic, partitions in topics.items():
            parts += (string_field(topic), I32.pack(len(partitions)))
            parts += map(I32.pack, partitions)
    parts.append(_TIMES.pack(to.last_update_ms, to.start_ms))
    return b"".join(parts)


def read_transaction_key(data: bytes) -> str | None:
    """The transactional id, or None if the key has a version of a later Kafka.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = RecordReader(data, TRANSACTION_STATE_TOPIC)
    return reader.string() if reader.i16() == _VERSION else None


def read_transaction(transactional_id: str, data: bytes) -> Transaction:
    """The transactional id's state in a record.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version or state that is not known.
    """
    reader = RecordReader(data, TRANSACTION_STATE_TOPIC)
    reader.version(_VERSION)
    found = Transaction(transactional_id, reader.i64(), reader.i16(), timeout_ms=reader.i32())
    state = reader.i8()
    if state not in _STATES:
        raise reader.corrupt(f"the state {state} is not known")
    found.state = _STATES[state]
    for _ in range(reader.i32()):
        topic = reader.string()
        found.partitions.update(TopicPartition(topic, reader.i32()) for _ in range(reader.i32()))
    found.last_update_ms, found.start_ms = reader.i64(), reader.i64()
    return found
