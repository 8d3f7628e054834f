"""Markers into logs: what they end, and what of it is reported for each partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import CommitOffsets, FetchOffsets, OffsetToCommit
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.cores.server_parts import Parts

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PRODUCER = Producer(7, 0)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path, properties={"transaction.partition.verification.enable": "false"})


def write(parts: Parts, *partitions: TopicPartition, **fields: Any) -> list[Any]:
    """Write markers; return the results that have been reported."""
    told: list[Any] = []
    what = {"transactional_id": "x", "producer": PRODUCER, "commit": True, "coordinator_epoch": 1}
    markers = Markers(**{**what, **fields}, partitions=partitions)
    parts.markers.write(markers, told.append)
    return told


def produce(parts: Parts) -> None:
    batch = build_batch(
        [RecordData(b"k", b"v", 0)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    parts.replicas.append("t", 0, batch, 1, 11)


def test_a_marker_ends_the_producers_transaction(parts: Parts) -> None:
    log = parts.lead().log
    produce(parts)
    assert log.last_stable_offset == 0
    assert write(parts, T0) == [{T0: ErrorCode.NONE}]
    assert log.last_stable_offset == 2
    assert read_header(log.read(1, 1000, 2, True).records).is_control


def test_a_late_marker_does_not_end_the_next_transaction(parts: Parts) -> None:
    """It was sent twice, and has ended the transaction before, in whose epoch plus one the next one
    begins. One of an administrator has the epoch of the transaction that it ends."""
    log = parts.lead().log
    assert write(parts, T0, transaction_version=2) == [{T0: ErrorCode.NONE}]
    produce(parts)
    late = write(parts, T0, transaction_version=2, commit=False)
    assert late == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]
    assert log.last_stable_offset == 1
    assert write(parts, T0, producer=Producer(7, 1), transaction_version=2) == [{T0: 0}]
    assert log.last_stable_offset == 3
    assert not log.aborted_transactions(0, 3)


def test_an_administrator_ends_a_transaction_in_its_epoch(parts: Parts) -> None:
    log = parts.lead().log
    produce(parts)
    assert write(parts, T0, commit=False) == [{T0: ErrorCode.NONE}]
    assert log.last_stable_offset == 2


def test_an_abort_is_told_to_readers(parts: Parts) -> None:
    log = parts.lead().log
    produce(parts)
    write(parts, T0, commit=False)
    assert [(a.producer_id, a.first_offset) for a in log.aborted_transactions(0, 2)] == [(7, 0)]


def test_each_partition_has_its_own_outcome(parts: Parts) -> None:
    parts.lead()
    (errors,) = write(parts, T0, T1)
    assert errors == {T0: ErrorCode.NONE, T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_nothing_is_told_before_all_are_replicated(parts: Parts) -> None:
    partition = parts.lead(isr=(1, 2))
    told = write(parts, T0)
    assert told == []
    parts.fetch_as_follower(partition, 1)
    assert told == [{T0: ErrorCode.NONE}]


def test_a_coordinator_of_before_is_fenced(parts: Parts) -> None:
    parts.lead()
    write(parts, T0, coordinator_epoch=5)
    assert write(parts, T0, coordinator_epoch=4) == [{T0: ErrorCode.TRANSACTION_COORDINATOR_FENCED}]
    old = Producer(7, -1)
    assert write(parts, T0, producer=old) == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]


def test_a_decision_over_no_partitions_is_done(parts: Parts) -> None:
    assert write(parts) == [{}]


@pytest.mark.parametrize(("commit", "offset"), [(True, 5), (False, -1)])
def test_a_marker_decides_on_offsets(parts: Parts, commit: bool, offset: int) -> None:
    parts.coordinate()
    groups = parts.groups
    request = CommitOffsets("g", {T0: OffsetToCommit(5)}, producer=PRODUCER)
    groups.call(groups.coordinator.commit_offsets, request, lambda result: result)
    write(parts, TopicPartition(GROUP_METADATA_TOPIC, 0), commit=commit)
    question = FetchOffsets("g", [T0], require_stable=True)
    answer = groups.call(groups.coordinator.fetch_offsets, question, lambda result: result)
    assert (answer.offsets[T0].offset, answer.offsets[T0].error) == (offset, ErrorCode.NONE)


def test_a_marker_during_a_load_decides_on_nothing_before_it(tmp_path: Path) -> None:
    """It would commit the offsets of an earlier transaction of the producer, which was aborted, if
    the load has not come to that marker yet."""
    properties = {"transaction.partition.verification.enable": "false",
                  "offsets.load.buffer.size": "1"}  # fmt: skip
    parts = Parts(tmp_path, properties=properties)
    parts.coordinate()
    groups, offsets_partition = parts.groups, TopicPartition(GROUP_METADATA_TOPIC, 0)
    for partition in (T0, T1):
        request = CommitOffsets("g", {partition: OffsetToCommit(5)}, producer=PRODUCER)
        groups.call(groups.coordinator.commit_offsets, request, lambda result: result)
        if partition == T0:
            write(parts, offsets_partition, commit=False)
    parts.coordinate_on_other_broker()
    parts.lead(GROUP_METADATA_TOPIC, leader_epoch=10, partition_epoch=10)
    question = FetchOffsets("g", [T0, T1], require_stable=True)

    def fetch() -> Any:
        return groups.call(groups.coordinator.fetch_offsets, question, lambda result: result)

    assert fetch().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert write(parts, offsets_partition) == [{offsets_partition: ErrorCode.NONE}]
    while fetch().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        parts.timers.fire()
    assert {each: found.offset for each, found in fetch().offsets.items()} == {T0: -1, T1: 5}
