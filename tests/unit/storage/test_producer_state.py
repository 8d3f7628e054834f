"""Sequences, epochs and transactions of producers, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import BatchHeader, read_header
from kafkapy.record.builder import build_batch
from kafkapy.record.control import ControlRecordType, EndTransactionMarker
from kafkapy.storage.producer_state import (
    CompletedTransaction,
    ProducerEntry,
    ProducerState,
    is_expired,
)
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.log_builder import row

ABORT = EndTransactionMarker(ControlRecordType.ABORT, 2)
COMMIT = EndTransactionMarker(ControlRecordType.COMMIT, 2)
INT_MAX = 2**31 - 1


def data(
    sequence: int, count: int = 1, epoch: int = 0, pid: int = 7, transactional: bool = False
) -> BatchHeader:
    return read_header(
        build_batch(
            [row()] * count,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def control(pid: int = 7, epoch: int = 0) -> BatchHeader:
    made = build_batch(
        [row()], producer_id=pid, producer_epoch=epoch, is_transactional=True, is_control=True
    )
    return read_header(made)


def known(*headers: BatchHeader) -> ProducerState:
    state = ProducerState()
    offset = 0
    for header in headers:
        state.append(header, offset, None)
        offset += header.last_offset_delta + 1
    return state


@pytest.mark.parametrize(
    ("before", "sent", "refusal"),
    [
        ([], data(500), None),
        ([data(0, 3)], data(3), None),
        ([data(0, 3)], data(4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([data(0, 3)], data(2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([data(0, 3)], data(0, 1, epoch=1), None),
        ([data(0, 3)], data(3, 1, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([data(0, 3, epoch=4)], data(3, epoch=3), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([data(INT_MAX)], data(0), None),
        ([data(INT_MAX - 1, 4)], data(2), None),
        ([data(INT_MAX - 1, 4)], data(0), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([data(0, transactional=True)], data(1), ErrorCode.INVALID_TXN_STATE),
        ([data(0, transactional=True)], data(1, transactional=True), None),
    ],
)
def test_what_may_follow(
    before: list[BatchHeader], sent: BatchHeader, refusal: ErrorCode | None
) -> None:
    state = known(*before)

    def check() -> None:
        state.validate(sent, None)
        state.validate_sequence(sent)

    if refusal is None:
        check()
        return
    with pytest.raises(ApiError) as caught:
        check()
    assert caught.value.code is refusal


def test_the_last_five_batches_are_remembered() -> None:
    state = known(*(data(2 * i, 2) for i in range(6)))
    assert state.find_duplicate(data(0, 2)) is None
    for i in range(1, 6):
        found = state.find_duplicate(data(2 * i, 2))
        assert found is not None
        assert (found.first_offset, found.last_offset) == (2 * i, 2 * i + 1)
    assert state.find_duplicate(data(10, 1)) is None
    assert state.find_duplicate(data(10, 2, epoch=1)) is None
    assert state.find_duplicate(data(10, 2, pid=8)) is None


def test_a_duplicate_across_the_wrap() -> None:
    state = known(data(INT_MAX, 3))
    found = state.find_duplicate(data(INT_MAX, 3))
    assert found is not None
    assert found.first_sequence == INT_MAX


def test_a_new_epoch_forgets_the_older_batches() -> None:
    state = known(data(0), data(0, epoch=1))
    assert state.find_duplicate(data(0)) is None
    assert [b.last_offset for b in state.producers[7].batches] == [1]


def test_a_transaction_from_begin_to_stable() -> None:
    state = known(data(0, 2, transactional=True), data(2, transactional=True))
    assert state.first_unstable_offset == 0
    completed = state.append(control(), 3, ABORT)
    assert completed == (7, 0, 3, True)
    assert state.last_stable_offset(completed) == 4
    state.complete(completed)
    assert state.first_unstable_offset == 0
    state.on_high_watermark(3)
    assert state.first_unstable_offset == 0
    state.on_high_watermark(4)
    assert state.first_unstable_offset is None
    assert state.producers[7].coordinator_epoch == 2


def test_the_oldest_open_transaction_holds_the_stable_offset() -> None:
    state = known(data(0, pid=1, transactional=True), data(0, pid=2, transactional=True))
    second = state.append(control(pid=2), 2, COMMIT)
    assert second == (2, 1, 2, False)
    assert state.last_stable_offset(second) == 0
    state.complete(second)
    state.on_high_watermark(3)
    assert state.first_unstable_offset == 0
    first = state.append(control(pid=1), 3, COMMIT)
    assert first is not None
    state.complete(first)
    assert state.first_unstable_offset == 0
    state.on_high_watermark(4)
    assert state.first_unstable_offset is None


@pytest.mark.parametrize("seed", range(20))
def test_the_first_unstable_offset_is_the_least_of_all(seed: int) -> None:
    state, random = ProducerState(), Random(seed)
    ongoing: dict[int, int] = {}
    unreplicated: dict[int, int] = {}
    high_watermark = 0
    for offset in range(200):
        pid = random.randrange(5)
        if pid not in ongoing:
            state.append(data(0, pid=pid, transactional=True), offset, None)
            ongoing[pid] = offset
        elif random.random() < 0.5:
            completed = state.append(control(pid=pid), offset, COMMIT)
            assert completed is not None
            state.complete(completed)
            unreplicated[ongoing.pop(pid)] = offset
        else:
            high_watermark = random.randrange(high_watermark, offset + 1)
            state.on_high_watermark(high_watermark)
            unreplicated = {f: last for f, last in unreplicated.items() if last >= high_watermark}
        least = min([*ongoing.values(), *unreplicated], default=None)
        assert state.first_unstable_offset == least


def test_each_append_finds_the_first_unstable_offset_without_a_search() -> None:
    """A leader whose follower lags had tens of thousands of transactions to search."""

    class Unsearched(dict[int, int]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("searched")

    state = ProducerState()
    state._unreplicated = Unsearched()
    for first in (4, 2, 6):
        state.complete(CompletedTransaction(1, first, 10 + first, False))
    assert state.first_unstable_offset == 2


def test_a_marker_without_a_transaction_completes_nothing_but_fences() -> None:
    state = ProducerState()
    assert state.append(control(epoch=5), 0, ABORT) is None
    assert state.producers[7].producer_epoch == 5
    with pytest.raises(ApiError) as caught:
        state.validate(data(0, epoch=4), None)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    state.validate_sequence(data(0, epoch=5))
    with pytest.raises(ApiError) as caught:
        state.validate_sequence(data(3, epoch=5))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_markers_are_fenced_by_coordinator_epoch() -> None:
    state = ProducerState()
    state.append(control(), 0, ABORT)
    state.validate(control(), ABORT)
    with pytest.raises(ApiError) as caught:
        state.validate(control(), EndTransactionMarker(ControlRecordType.COMMIT, 1))
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_control_record_of_another_kind_changes_nothing() -> None:
    state = known(data(0, transactional=True))
    assert state.append(control(epoch=9), 1, None) is None
    assert (state.producers[7].producer_epoch, state.first_unstable_offset) == (0, 0)


def test_idle_producers_expire_unless_in_a_transaction() -> None:
    state = known(data(0, pid=1), data(0, pid=2, transactional=True))
    assert state.expire(NOW_MS + 99, 100) == 0
    assert state.expire(NOW_MS + 100, 100) == 1
    assert [entry.producer_id for entry in state] == [2]
    assert is_expired(ProducerEntry(5, last_timestamp=0), 100, 100)


def test_load_restores_open_transactions_in_order() -> None:
    entries = [
        ProducerEntry(1, 0, transaction_first_offset=50),
        ProducerEntry(2, 0, transaction_first_offset=20),
        ProducerEntry(3, 0),
    ]
    state = known(data(0, pid=9))
    state.load(entries)
    assert sorted(state.producers) == [1, 2, 3]
    assert state.first_unstable_offset == 20
    state.load([])
    assert (list(state), state.first_unstable_offset) == ([], None)
