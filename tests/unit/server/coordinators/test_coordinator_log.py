"""A coordinator's batches: acknowledged when replicated, read back by whoever leads next."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Append, Producer
from kafkapy.record.batch_header import Buffer, iter_headers, read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.replication.partition import Partition
from kafkapy.server.coordinators.coordinator_log import CoordinatorLog, append_and_wait
from kafkapy.storage.local_log import LocalLog
from tests.harness.cores.server_parts import Parts

RECORD = RecordData(b"k", b"v", 0)
T0 = TopicPartition(TRANSACTION_STATE_TOPIC, 0)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path, properties={"transaction.partition.verification.enable": "false"})


def log_of(parts: Parts, load_buffer_bytes: int = 1 << 20) -> CoordinatorLog:
    return CoordinatorLog(
        TRANSACTION_STATE_TOPIC,
        parts.replicas,
        parts.clock,
        parts.timers.call_later,
        codec=Codec.NONE,
        timeout_ms=1000,
        load_buffer_bytes=load_buffer_bytes,
        logger=logging.getLogger("tests"),
    )


def append(log: CoordinatorLog, **fields: object) -> list[tuple[ErrorCode, int]]:
    told: list[tuple[ErrorCode, int]] = []
    what = Append(1, 0, 1, [RECORD], **fields)  # type: ignore[arg-type]
    log.append(what, lambda error, offset: told.append((error, offset)))
    return told


def test_an_append_is_told_of_when_it_is_replicated(parts: Parts) -> None:
    partition = parts.lead(TRANSACTION_STATE_TOPIC, isr=(1, 2))
    told = append(log_of(parts))
    assert told == []
    parts.fetch_as_follower(partition, 1)
    assert told == [(ErrorCode.NONE, 0)]


def test_an_append_that_nobody_waits_for_is_told_of_at_once(parts: Parts) -> None:
    parts.lead(TRANSACTION_STATE_TOPIC, isr=(1, 2))
    assert append(log_of(parts), required_acks=0) == [(ErrorCode.NONE, 0)]


def test_a_partition_led_elsewhere_refuses(parts: Parts) -> None:
    parts.lead(TRANSACTION_STATE_TOPIC, leader=2, isr=(1, 2))
    assert append(log_of(parts)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_a_batch_within_a_transaction_says_whose(parts: Parts) -> None:
    partition = parts.lead(TRANSACTION_STATE_TOPIC)
    append(log_of(parts), producer=Producer(7, 3))
    header = read_header(partition.log.read(0, 1000, 1, True).records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 0)
    assert header.is_transactional


def test_a_log_is_read_in_slices_between_which_others_have_their_turn(parts: Parts) -> None:
    partition = parts.lead(TRANSACTION_STATE_TOPIC)
    for _ in range(3):
        append_and_wait(parts.replicas, T0, build_batch([RECORD]), 1, 0, lambda *_: None)
    seen: list[int] = []
    finished: list[int] = []

    def replay(index: int, records: Buffer) -> None:
        seen.extend(header.base_offset for _, header in iter_headers(records))

    log = log_of(parts, load_buffer_bytes=1)
    log.load(
        partition, replay, lambda loaded, _end: finished.append(loaded.topic_partition.partition)
    )
    assert (seen, finished) == ([0], [])
    parts.timers.fire()
    parts.clock.now_ms += 30
    assert log.load_times.count == 0
    parts.timers.fire()
    assert (seen, finished) == ([0, 1, 2], [0])
    assert log.load_times.recent_s == [0.03]


def test_a_load_that_lacks_descriptors_goes_on_later(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load must retry what it could not read: skipped records are lost to the coordinator."""
    partition = parts.lead(TRANSACTION_STATE_TOPIC)
    append_and_wait(parts.replicas, T0, build_batch([RECORD]), 1, 0, lambda *_: None)
    seen: list[int] = []
    finished: list[int] = []
    refuse = OSError(errno.EMFILE, "Too many open files")

    def done(loaded: Partition, _end: int) -> None:
        finished.append(loaded.topic_partition.partition)

    def read(*_: object) -> None:
        raise refuse

    with monkeypatch.context() as short:
        short.setattr(LocalLog, "read", read)
        log = log_of(parts)
        log.load(partition, lambda _, records: seen.append(len(records)), done)
        assert (seen, finished) == ([], [])
    parts.timers.fire()
    assert (len(seen), finished) == (1, [0])


@pytest.mark.parametrize("ended_by", ["cancel", "stop"])
def test_a_load_that_is_ended_does_not_go_on(parts: Parts, ended_by: str) -> None:
    partition = parts.lead(TRANSACTION_STATE_TOPIC)
    for _ in range(2):
        append_and_wait(parts.replicas, T0, build_batch([RECORD]), 1, 0, lambda *_: None)
    finished: list[int] = []
    log = log_of(parts, load_buffer_bytes=1)
    log.load(
        partition,
        lambda index, records: None,
        lambda loaded, _end: finished.append(loaded.topic_partition.partition),
    )
    if ended_by == "cancel":
        log.cancel_load(0)
    else:
        log.stop()
    parts.timers.fire()
    assert finished == []


@pytest.mark.parametrize("index_interval", ["1", "100000"])
def test_damage_costs_no_more_than_it_must(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, index_interval: str
) -> None:
    """Without an index entry behind it, the rest of the segment."""
    parts = Parts(tmp_path, properties={"log.index.interval.bytes": index_interval})
    partition = parts.lead(TRANSACTION_STATE_TOPIC)
    for count in range(6):
        append_and_wait(parts.replicas, T0, build_batch([RECORD]), 1, 0, lambda *_: None)
        if count == 3:
            partition.log.roll(0)
    (path,) = tmp_path.glob("**/00000000000000000000.log")
    data = bytearray(path.read_bytes())
    at = 2 * len(build_batch([RECORD]))
    data[at + 8 : at + 12] = bytes(4)
    path.write_bytes(data)
    seen: list[int] = []
    finished: list[int] = []

    def replay(index: int, records: Buffer) -> None:
        seen.extend(header.base_offset for _, header in iter_headers(records))

    log_of(parts, load_buffer_bytes=1).load(
        partition, replay, lambda loaded, _end: finished.append(loaded.topic_partition.partition)
    )
    for _ in range(6):
        parts.timers.fire()
    assert finished == [0]
    assert seen == ([0, 1, 3, 4, 5] if index_interval == "1" else [0, 1, 4, 5])
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "Error loading __transaction_state-0 at offset 2: " in line
    assert line.endswith(f"what lies before offset {seen[2]} is skipped")
