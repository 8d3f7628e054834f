"""The bytes of `__transaction_state`, as Apache Kafka 3.9 writes them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.transactions.log_records import (
    read_transaction,
    read_transaction_key,
    transaction_key,
    transaction_value,
)
from kafkapy.coordinator.transactions.state import TransactionState, Transition

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


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00\x01" + ONGOING_BYTES[2:], "value version 1 is not known"),
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
