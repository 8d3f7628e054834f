"""A batch in flight behind a refused one is refused alike, so that its producer sends both again
in order."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.replication.partition import Partition
from kafkapy.replication.refused_batches import (
    PARTITIONS_MAX,
    PIPELINED_MAX,
    PRODUCERS_MAX,
    REFUSAL_TTL_MS,
    RefusedBatches,
    UnhostedRefusals,
)
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.batches import patched
from tests.harness.storage.partitions import batch, log_manager, make_partition, partition_state

PRODUCER = 7
NONE = ErrorCode.NONE
TOO_FEW = ErrorCode.NOT_ENOUGH_REPLICAS
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    manager = log_manager(tmp_path)
    partition = make_partition(manager, overrides={"min.insync.replicas": "2"})
    return in_sync(partition, 1, 2)


def in_sync(partition: Partition, *isr: int) -> Partition:
    """The leader's ISR from now on."""
    epoch = partition.leader_epoch + 1
    partition.make_leader(
        partition_state(isr=isr, replicas=(1, 2), leader_epoch=epoch, partition_epoch=epoch), NOW_MS
    )
    return partition


def numbered(sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> bytes:
    """A producer's batch of one record."""
    return patched(
        batch(timestamp=NOW_MS),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def send(
    partition: Partition,
    sequence: int,
    *,
    epoch: int = 0,
    producer_id: int = PRODUCER,
    now_ms: int = NOW_MS,
) -> ErrorCode:
    records = numbered(sequence, epoch=epoch, producer_id=producer_id)
    try:
        partition.append_as_leader(records, -1, NOW_MS, now_ms, 11)
    except ApiError as error:
        return error.code
    return NONE


def sent(partition: Partition, *sequences: int) -> list[ErrorCode]:
    return [send(partition, sequence) for sequence in sequences]


def test_what_was_in_flight_behind_a_refused_batch_is_refused_alike(partition: Partition) -> None:
    assert sent(partition, 0, 1) == [NONE, NONE]
    in_sync(partition, 1)
    assert send(partition, 2) is TOO_FEW
    in_sync(partition, 1, 2)
    assert sent(partition, 3, 4) == [TOO_FEW, TOO_FEW]
    assert sent(partition, 2, 3, 4, 5) == [NONE] * 4
    assert partition.log.log_end_offset == 6


def test_the_first_batch_of_a_producer_is_not_overtaken(partition: Partition) -> None:
    """The log knows no sequence to hold it to: Kafka would take the second one first."""
    in_sync(partition, 1)
    assert send(partition, 0) is TOO_FEW
    in_sync(partition, 1, 2)
    assert sent(partition, 1, 0, 1) == [TOO_FEW, NONE, NONE]


def test_a_broker_that_becomes_leader_meanwhile_keeps_the_order(partition: Partition) -> None:
    assert send(partition, 0) is NONE
    partition.make_follower(partition_state(2, isr=(1, 2), leader_epoch=8, partition_epoch=8))
    assert send(partition, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    in_sync(partition, 1, 2)
    assert sent(partition, 2, 1, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, NONE, NONE]


def test_a_refused_batch_that_another_leader_took_holds_nothing_up(partition: Partition) -> None:
    """Chaos saw it: refused by a former leader, taken by the next, and soon the first leads again.

    It refused what was sent again from then on, four times, and then the fifth batch was out of
    order: a new producer epoch, and two records twice.
    """
    assert send(partition, 0) is NONE
    partition.make_follower(partition_state(2, isr=(1, 2), leader_epoch=8, partition_epoch=8))
    assert send(partition, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    for offset in (1, 2):
        copied = patched(numbered(offset), base_offset=offset, partition_leader_epoch=8)
        partition.log.append_as_follower(copied, NOW_MS)
    in_sync(partition, 1, 2)
    assert sent(partition, 2, 3) == [NONE, NONE]
    assert partition.log.log_end_offset == 4


def test_a_partition_that_is_hosted_meanwhile_keeps_the_order(tmp_path: Path) -> None:
    """The broker has restarted, or the topic is new, and the controller's command comes between a
    producer's batches in flight."""
    parts = Parts(tmp_path)

    def sent(*sequences: int) -> list[ErrorCode]:
        codes = []
        for sequence in sequences:
            try:
                parts.replicas.append("t", 0, numbered(sequence), -1, 11)
            except ApiError as error:
                codes.append(error.code)
            else:
                codes.append(NONE)
        return codes

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sent(0, 1) == [unknown] * 2
    partition = parts.lead()
    assert sent(2, 3) == [unknown] * 2
    assert sent(0, 1, 2, 3) == [NONE] * 4
    assert partition.log.log_end_offset == 4


def test_the_refusals_of_partitions_that_are_not_hosted_are_bounded() -> None:
    beforehand, error = UnhostedRefusals(), ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for i in range(PARTITIONS_MAX + 5):
        assert beforehand.refuse(("t", i), numbered(0), error, NOW_MS) is error
    assert len(beforehand.by_partition) == PARTITIONS_MAX
    assert beforehand.refuse(("u", 0), batch(), error, NOW_MS) is error
    assert len(beforehand.by_partition) == PARTITIONS_MAX
    refused = RefusedBatches()
    beforehand.move_to([("t", 0), ("u", 0)], refused, NOW_MS)
    assert not refused
    late_ms = NOW_MS + REFUSAL_TTL_MS
    beforehand.move_to([("t", 5)], refused, late_ms)
    assert (len(refused), len(beforehand.by_partition)) == (1, PARTITIONS_MAX - 1)
    beforehand.move_to([("t", 6)], refused, late_ms + 1)
    assert len(beforehand.by_partition) == 0


def test_a_batch_that_no_descriptor_was_left_for_is_not_overtaken(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as short:
        short.setattr(type(partition.log.segments.active), "append", refuse)
        assert send(partition, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert sent(partition, 1, 0, 1) == [ErrorCode.KAFKA_STORAGE_ERROR, NONE, NONE]


def test_the_earliest_refused_batch_is_the_one_to_wait_for(partition: Partition) -> None:
    assert send(partition, 0) is NONE
    in_sync(partition, 1)
    assert sent(partition, 1, 2, 1) == [TOO_FEW] * 3
    in_sync(partition, 1, 2)
    assert sent(partition, 2, 1, 2) == [TOO_FEW, NONE, NONE]


def test_sequences_wrap(partition: Partition) -> None:
    last = 2**31 - 1
    assert send(partition, last - 1) is NONE
    in_sync(partition, 1)
    assert send(partition, last) is TOO_FEW
    in_sync(partition, 1, 2)
    assert sent(partition, 0, last, 0) == [TOO_FEW, NONE, NONE]


def test_no_more_than_can_be_in_flight_is_refused(partition: Partition) -> None:
    """A producer that gave the refused batch up hears at last what Kafka says."""
    assert send(partition, 0) is NONE
    in_sync(partition, 1)
    assert send(partition, 1) is TOO_FEW
    in_sync(partition, 1, 2)
    assert sent(partition, *range(2, 2 + PIPELINED_MAX)) == [TOO_FEW] * PIPELINED_MAX
    assert send(partition, 6) is OUT_OF_ORDER


def test_a_refusal_is_forgotten_after_a_while(partition: Partition) -> None:
    assert send(partition, 0) is NONE
    in_sync(partition, 1)
    assert send(partition, 1) is TOO_FEW
    in_sync(partition, 1, 2)
    assert send(partition, 2, now_ms=NOW_MS + REFUSAL_TTL_MS) is TOO_FEW
    assert send(partition, 2, now_ms=NOW_MS + REFUSAL_TTL_MS + 1) is OUT_OF_ORDER
    assert not partition.refused_batches


def test_a_new_epoch_and_other_producers_go_their_own_way(partition: Partition) -> None:
    in_sync(partition, 1)
    assert send(partition, 3) is TOO_FEW
    in_sync(partition, 1, 2)
    assert send(partition, 4, producer_id=8) is NONE
    assert send(partition, -1, producer_id=-1, epoch=-1) is NONE
    assert send(partition, 0, epoch=1) is NONE
    assert not partition.refused_batches


def test_what_is_remembered_is_bounded(partition: Partition) -> None:
    in_sync(partition, 1)
    for producer_id in range(PRODUCERS_MAX + 5):
        assert send(partition, 0, producer_id=producer_id) is TOO_FEW
    assert len(partition.refused_batches) == PRODUCERS_MAX


@pytest.mark.parametrize("records", [b"", bytes(80)], ids=["none", "zeros"])
def test_bytes_that_are_no_batch_are_refused_for_what_they_are(
    partition: Partition, records: bytes
) -> None:
    in_sync(partition, 1)
    assert send(partition, 0) is TOO_FEW
    with pytest.raises(ApiError, match="insufficient"):
        partition.append_as_leader(records, -1, NOW_MS, NOW_MS, 11)
    in_sync(partition, 1, 2)
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(records, -1, NOW_MS, NOW_MS, 11)
    assert refused.value.code is not TOO_FEW


def test_a_leader_without_zookeeper_answers_a_gap_with_not_leader(
    partition: Partition,
) -> None:
    """The missing batches are in the log of the next leader. The producer came back by outdated
    metadata, and OUT_OF_ORDER_SEQUENCE_NUMBER is fatal to idempotent producers of librdkafka."""
    assert send(partition, 0) is NONE
    partition.may_be_replaced = lambda: True
    assert send(partition, 1) is NONE
    assert send(partition, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.may_be_replaced = lambda: False
    assert send(partition, 6) is ErrorCode.NOT_LEADER_OR_FOLLOWER  # it was sent behind the other
    assert send(partition, 5) is OUT_OF_ORDER
