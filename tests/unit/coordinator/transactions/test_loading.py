"""Whoever leads the partition next knows all that was answered."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from tests.harness.cores.transaction_shell import T0, T1, TransactionShell
from tests.harness.storage.batches import flipped, raw_batch, row_bytes


def test_an_open_transaction_goes_on_with_the_next_coordinator() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    shell.restart()
    assert shell.state == "Ongoing"
    assert shell.add(producer, T1) is ErrorCode.NONE
    shell.end(producer)
    assert shell.markers[0].partitions == (T0, T1)


def test_nothing_is_answered_before_the_log_was_read() -> None:
    shell = TransactionShell(load=False)
    assert shell.init().error is ErrorCode.NOT_COORDINATOR
    shell.coordinator.start_loading(0, 1)
    assert shell.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shell.perform(shell.coordinator.finish_loading(0, 0))
    assert shell.init().error is ErrorCode.NONE


def test_a_tombstone_removes_an_id() -> None:
    shell = TransactionShell()
    shell.begin()
    shell.log.append(RecordData(shell.log[0].key, None, 0))
    shell.restart()
    assert shell.describe().error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_record_that_cannot_be_read_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    shell = TransactionShell()
    shell.begin()
    shell.log.insert(0, RecordData(b"\x00\x00\x00\x01x", b"\x00\x05", 0))
    shell.log.insert(0, RecordData(b"\x00\x09\x00\x01x", b"", 0))
    shell.restart()
    assert shell.state == "Empty"
    assert "value version 5 is not known" in caplog.text
    assert "a later Kafka wrote it" in caplog.text


def test_a_decision_that_may_still_be_lost_is_not_acted_on() -> None:
    """Its markers would commit partitions, and the next coordinator, which lacks the decision,
    would abort the others."""
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    shell.end(producer)
    shell.restart(replicated=False)
    assert shell.state == "PrepareCommit"
    assert shell.markers == []
    assert shell.end(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.perform(shell.coordinator.loaded_is_replicated(shell.now_ms, 0, 1))
    assert shell.markers == [], "of an earlier leadership"
    shell.perform(shell.coordinator.loaded_is_replicated(shell.now_ms, 0, 2))
    assert shell.markers[0].partitions == (T0,)


def test_a_decision_made_while_the_loaded_log_is_replicated_is_marked_once() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    shell.restart(replicated=False)
    shell.end(producer)
    shell.perform(shell.coordinator.loaded_is_replicated(shell.now_ms, 0, 2))
    assert len(shell.markers) == 1


@pytest.mark.parametrize(
    "bad",
    [
        raw_batch(row_bytes(b"\x00\x00\x00\x02k\x7fv\x00"), 1),
        raw_batch(b"not zstd", 1, Codec.ZSTD),
        flipped(build_batch([RecordData(b"k", b"v", 0)])),
    ],
    ids=["value length", "compression", "crc"],
)
def test_a_batch_that_cannot_be_read_costs_no_other(
    bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Here a decision stands behind it: without it the transaction would be aborted."""
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    *before, last = [build_batch([record]) for record in shell.log]
    shell.coordinator.unload(0)
    shell.coordinator.start_loading(0, 2)
    shell.coordinator.replay_batches(0, b"".join(before) + bad + last)
    shell.perform(shell.coordinator.finish_loading(0, 0))
    assert shell.state == "Ongoing"
    assert "__transaction_state-0" in caplog.text
    assert "batch at offset 0" in caplog.text


def test_who_leads_no_more_answers_what_is_under_way_so() -> None:
    shell = TransactionShell()
    shell.held = []
    shell.init()
    shell.perform(shell.coordinator.unload(0, 2))
    shell.release()
    assert [reply.error for reply in shell.replies.values()] == [ErrorCode.NOT_COORDINATOR]
    assert shell.init().error is ErrorCode.NOT_COORDINATOR


def test_an_old_resignation_is_ignored() -> None:
    shell = TransactionShell(load=False)
    shell.lead(5)
    shell.perform(shell.coordinator.unload(0, 4))
    assert shell.init().error is ErrorCode.NONE


def test_a_later_epoch_of_the_same_leader_loads_anew() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.held = []
    shell.add(producer, T0)
    assert not shell.coordinator.start_loading(0, 1), "that is the epoch it leads at"
    (append,) = shell.held
    shell.log.extend(append.records)
    shell.held = None
    shell.lead(2)
    assert shell.state == "Ongoing", "the record is in the log, whoever waits for its acks"
    shell.finish(append, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert shell.add(producer, T1) is ErrorCode.NONE, "nothing is under way any more"


def test_a_control_batch_is_passed_over() -> None:
    shell = TransactionShell(load=False)
    shell.coordinator.start_loading(0, 1)
    control = build_batch([RecordData(b"\x00\x00\x00\x01", b"", 0)], is_control=True, producer_id=1)
    shell.coordinator.replay_batches(0, control)
    shell.perform(shell.coordinator.finish_loading(0, 0))
    assert shell.init().error is ErrorCode.NONE
