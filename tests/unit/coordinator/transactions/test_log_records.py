"""The bytes of `__transaction_state`, as Apache Kafka 3.9 and 4 write them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.log_records import (
    read_transaction,
    read_transaction_key,
    transaction_key,
    transaction_value,
)
from kafkapy.coordinator.transactions.state import LAST_EPOCH, TransactionState, Transition

ONGOING = Transition(
    TransactionState.ONGOING,
    7,
    3,
    2,
    60_000,
    frozenset({TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1)}),
    1_700_000_000_000,
    1_700_000_000_005,
)
ONGOING_BYTES = bytes.fromhex(
    "0000"  # version
    "0000000000000007 0003"  # producer id, epoch
    "0000ea60 01"  # timeout, state
    "00000002"
    "0001 61 00000002 00000001 00000002"
    "0001 62 00000001 00000000"
    "0000018bcfe56805 0000018bcfe56800"  # last update, start
)


def test_a_key() -> None:
    assert transaction_key("pay") == bytes.fromhex("0000 0003 706179")
    assert read_transaction_key(transaction_key("pay")) == "pay"


def test_a_key_of_a_later_kafka_is_not_known() -> None:
    assert read_transaction_key(bytes.fromhex("0001 0003 706179")) is None


def test_a_value() -> None:
    assert transaction_value(ONGOING) == ONGOING_BYTES
    found = read_transaction("pay", ONGOING_BYTES)
    assert (found.transactional_id, found.producer_id, found.producer_epoch) == ("pay", 7, 3)
    assert (found.timeout_ms, found.state) == (60_000, TransactionState.ONGOING)
    assert found.partitions == ONGOING.partitions
    assert (found.last_update_ms, found.start_ms) == (1_700_000_000_005, 1_700_000_000_000)
    assert found.pending is None


def test_an_empty_one_has_no_list_of_partitions() -> None:
    empty = ONGOING._replace(state=TransactionState.EMPTY, partitions=frozenset())
    data = transaction_value(empty)
    assert data[17:21] == b"\xff\xff\xff\xff"
    assert read_transaction("pay", data).partitions == set()


DECIDED = ONGOING._replace(
    state=TransactionState.PREPARE_COMMIT,
    producer_epoch=LAST_EPOCH,
    partitions=frozenset({TopicPartition("a", 1)}),
    client_version=2,
    previous_producer_id=7,
    next_producer_id=8,
)
DECIDED_BYTES = bytes.fromhex(
    "0001"  # version
    "0000000000000007 7fff"  # producer id, epoch
    "0000ea60 02"  # timeout, state
    "02 02 61 02 00000001 00"
    "0000018bcfe56805 0000018bcfe56800"  # last update, start
    "03"
    "00 08 0000000000000007"  # previous producer id
    "01 08 0000000000000008"  # next producer id
    "02 02 0002"  # transaction version of the client
)


def test_a_value_with_tagged_fields() -> None:
    assert transaction_value(DECIDED, 1) == DECIDED_BYTES
    found = read_transaction("pay", DECIDED_BYTES)
    assert (found.client_version, found.next_producer_id) == (2, 8)
    assert (found.producer_epoch, found.last_producer_epoch) == (LAST_EPOCH, LAST_EPOCH - 1)
    assert found.partitions == DECIDED.partitions
    assert found.last_producer_id == -1, "the id is the same as before"


def test_the_completion_of_the_last_epoch_says_whose_it_was() -> None:
    completed = DECIDED._replace(
        state=TransactionState.COMPLETE_COMMIT,
        producer_id=8,
        producer_epoch=0,
        partitions=frozenset(),
        next_producer_id=-1,
    )
    found = read_transaction("pay", transaction_value(completed, 1))
    assert (found.last_producer_id, found.last_producer_epoch) == (7, LAST_EPOCH - 1)
    assert found.is_ended_by(Producer(7, LAST_EPOCH - 1))


def test_tagged_fields_have_defaults() -> None:
    empty = ONGOING._replace(state=TransactionState.EMPTY, partitions=frozenset())
    data = transaction_value(empty, 1)
    assert data[17:18] == b"\0", "null"
    assert data[-1:] == b"\0", "no tagged field"
    assert read_transaction("pay", data).client_version == 0


def test_a_tagged_field_of_a_later_kafka_is_passed_over() -> None:
    later = DECIDED_BYTES.replace(bytes.fromhex("02 02 0002"), bytes.fromhex("02 02 0002 09 01 ff"))
    later = later.replace(bytes.fromhex("6800 03 00"), bytes.fromhex("6800 04 00"))
    assert read_transaction("pay", later).client_version == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00\x02" + ONGOING_BYTES[2:], "value version 2 is not known"),
        (ONGOING_BYTES[:16] + b"\x07" + ONGOING_BYTES[17:], "the state 7 is not known"),
        (ONGOING_BYTES[:16] + b"\x09" + ONGOING_BYTES[17:], "the state 9 is not known"),
        (ONGOING_BYTES[:-1], "it ends too early"),
        (ONGOING_BYTES[:22], "it ends too early"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as caught:
        read_transaction("pay", data)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert "__transaction_state" in caught.value.message
