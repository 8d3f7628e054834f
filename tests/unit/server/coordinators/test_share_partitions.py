"""Share partitions over a pretend share coordinator: one request at a time, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.share_state import DeliveryState, SharePartitionKey, StateBatch
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.shares.messages import ReadState, StateRequest, StateResult, WriteState
from kafkapy.replication.shares.share_partition import Acknowledgement, RecordBatch, ShareLimits
from kafkapy.server.coordinators.share_partitions import LeaderSharePartition, SharePartitions
from kafkapy.server.requests.turns import Work, run_now
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.consumer_shell import topic_id
from tests.harness.cores.ports import ManualClock

KEY = SharePartitionKey("g", topic_id(1), 0)
LOCK_MS = 30_000


class Parts:
    """One led partition; the share coordinator answers when a test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[StateRequest, Callable[[StateResult], None]]] = []
        self.clock = ManualClock()
        self.checked: list[object] = []
        self.timers: list[Callable[[], None]] = []
        self.answers: list[ErrorCode] = []
        self.works: list[Work[None]] = []
        self.is_busy = False
        self.limits = ShareLimits()
        self.partition: Any = SimpleNamespace(
            leader_epoch=3,
            topic_partition=TopicPartition("t", 0),
            log=SimpleNamespace(log_start_offset=0, high_watermark=9),
        )
        self.purgatory = SimpleNamespace(check=self.checked.append)
        self.failures: list[LogDirFailure] = []
        replicas: Any = SimpleNamespace(
            fetch_purgatory=self.purgatory, log_dir_failed=self.failures.append
        )
        persister: Any = SimpleNamespace(
            send=lambda request, answered: self.requests.append((request, answered))
        )
        self.start_offset: Callable[[str, object], int] = lambda group_id, log: 4
        configs: Any = SimpleNamespace(
            limits=lambda group_id: self.limits,
            start_offset=self._start_offset,
        )
        later: Any = self._call_later
        slices: Any = SimpleNamespace(queue=self._queue)
        self.shares = SharePartitions(replicas, persister, configs, self.clock, later, slices)

    def _start_offset(self, group_id: str, find_log: Callable[[], object]) -> Work[int]:
        log = find_log()
        yield 1
        return self.start_offset(group_id, log)

    def _queue(self, work: Work[None]) -> None:
        self.works.append(work)
        if not self.is_busy:
            run_now(self.works.pop())

    def _call_later(self, delay_s: float, step: Callable[[], None]) -> Any:
        self.timers.append(step)
        return SimpleNamespace(cancel=lambda: None)

    def answer(self, error: ErrorCode = ErrorCode.NONE, **state: Any) -> StateRequest:
        request, answered = self.requests.pop(0)
        answered(StateResult(error, **state))
        return request

    def loaded(self) -> LeaderSharePartition:
        leader_share = self.shares.find(KEY, self.partition)
        assert self.answer(start_offset=0, state_epoch=2) == ReadState(KEY, 3)
        return leader_share

    def acquire(self, leader_share: LeaderSharePartition, *batches: RecordBatch) -> None:
        assert leader_share.shares is not None
        offset = leader_share.shares.next_fetch_offset
        leader_share.shares.acquire(self.clock.monotonic_ms(), "m", offset, batches, 100, 100)
        self.shares.set_timer(leader_share)

    def accept(self, leader_share: LeaderSharePartition, first: int, last: int) -> None:
        acks = [Acknowledgement(first, last, [1])]
        self.shares.acknowledge(
            leader_share, "m", acks, lambda error, message: self.answers.append(error)
        )


@pytest.fixture
def parts() -> Iterator[Parts]:
    parts = Parts()
    yield parts
    parts.shares.close()


def test_a_share_partition_is_loaded_once(parts: Parts) -> None:
    leader_share = parts.shares.find(KEY, parts.partition)
    assert parts.shares.find(KEY, parts.partition) is leader_share
    assert parts.shares.get_loaded(KEY) is None
    parts.answer(state_epoch=1, start_offset=4)
    assert parts.shares.get_loaded(KEY) is leader_share
    assert leader_share.shares is not None
    assert leader_share.shares.start_offset == 4
    assert parts.checked == [KEY], "a fetch may go on"


def test_where_a_new_share_partition_begins_is_stored_before_anything_is_delivered(
    parts: Parts,
) -> None:
    """The next leader would begin at its own latest offset."""
    leader_share = parts.shares.find(KEY, parts.partition)
    assert parts.answer(state_epoch=1) == ReadState(KEY, 3)
    assert parts.shares.get_loaded(KEY) is None
    assert parts.answer() == WriteState(KEY, 1, 3, 4, 0)
    assert leader_share.shares is not None
    assert (leader_share.shares.start_offset, leader_share.shares.state_epoch) == (4, 1), (
        "where the config says"
    )


def test_a_search_for_the_beginning_ends_with_the_leadership(parts: Parts) -> None:
    """Its log may be deleted, or another leader may have stored another beginning."""
    parts.is_busy = True
    parts.shares.find(KEY, parts.partition)
    parts.answer(state_epoch=1)
    assert not parts.requests
    parts.shares.on_leadership(parts.partition)
    run_now(parts.works.pop())
    assert not parts.requests


def test_a_beginning_that_is_not_stored_is_an_error_of_loading(parts: Parts) -> None:
    leader_share = parts.shares.find(KEY, parts.partition)
    parts.answer(state_epoch=1)
    parts.answer(ErrorCode.FENCED_LEADER_EPOCH)
    assert leader_share.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_disk_that_fails_while_the_beginning_is_searched_is_an_error_of_loading(
    parts: Parts,
) -> None:
    """Members waited without an end, and the directory stayed in service."""
    failure = LogDirFailure("/data", "I/O error")

    def search(group_id: str, log: object) -> int:
        raise failure

    parts.start_offset = search
    leader_share = parts.shares.find(KEY, parts.partition)
    parts.answer(state_epoch=1)
    assert leader_share.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert parts.failures == [failure]
    assert parts.checked == [KEY], "waiting fetches are answered"


def test_fetches_that_are_checked_check_others_one_after_the_other(parts: Parts) -> None:
    """A hundred of them within each other would be too deep."""
    depth = deepest = 0

    def check(key: object) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        parts.checked.append(key)
        if len(parts.checked) < 5:
            parts.shares.unload(parts.shares.find(KEY, parts.partition))
        depth -= 1

    parts.purgatory.check = check
    parts.shares.unload(parts.shares.find(KEY, parts.partition))
    assert (len(parts.checked), deepest) == (5, 1)


def test_configs_that_change_count_for_the_next_fetch(parts: Parts) -> None:
    """Members hear of the new duration of locks at once."""
    leader_share = parts.loaded()
    parts.limits = ShareLimits(lock_duration_ms=1)
    parts.shares.find(KEY, parts.partition)
    assert leader_share.shares is not None
    assert leader_share.shares.limits == parts.limits


def test_after_the_end_nothing_is_loaded(parts: Parts) -> None:
    parts.loaded()
    parts.shares.close()
    with pytest.raises(ApiError) as refusal:
        parts.shares.find(KEY, parts.partition)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_changes_are_stored_one_after_the_other_and_together(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 9))
    parts.accept(leader_share, 0, 1)
    parts.accept(leader_share, 4, 5)
    parts.accept(leader_share, 6, 7)
    assert len(parts.requests) == 1
    first = parts.answer()
    assert isinstance(first, WriteState)
    assert (first.state_epoch, first.leader_epoch, len(first.batches)) == (2, 3, 1)
    assert parts.answers == [ErrorCode.NONE]
    second = parts.answer()
    assert isinstance(second, WriteState)
    assert (second.start_offset, second.delivery_complete_count) == (2, 4)
    assert second.batches == [StateBatch(4, 7, DeliveryState.ACKNOWLEDGED, 1)]
    assert parts.answers == [ErrorCode.NONE] * 3


def test_an_expired_lock_does_not_undo_what_came_after_it(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.accept(leader_share, 0, 0)
    parts.clock.now_ms += LOCK_MS
    parts.timers.pop()()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.accept(leader_share, 1, 1)
    parts.answer()
    last = parts.answer()
    assert isinstance(last, WriteState)
    assert last.batches == [StateBatch(1, 1, DeliveryState.ACKNOWLEDGED, 2)]
    assert not parts.requests


def test_a_change_that_is_not_stored_is_told(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.accept(leader_share, 0, 1)
    parts.answer(ErrorCode.NETWORK_EXCEPTION)
    assert parts.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert parts.shares.get_loaded(KEY) is leader_share
    parts.accept(leader_share, 0, 1)
    parts.answer(ErrorCode.FENCED_STATE_EPOCH)
    assert parts.answers[-1] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert parts.shares.get_loaded(KEY) is None, "it is loaded again"
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.accept(leader_share, 0, 1)
    parts.answer(ErrorCode.INVALID_REQUEST)
    assert parts.shares.get_loaded(KEY) is None, "it was deleted"


def test_errors_of_loading(parts: Parts) -> None:
    parts.shares.find(KEY, parts.partition)
    parts.answer(ErrorCode.NOT_COORDINATOR)
    leader_share = parts.shares.find(KEY, parts.partition)
    parts.answer(ErrorCode.INVALID_REQUEST)
    assert leader_share.error is ErrorCode.UNKNOWN_SERVER_ERROR
    parts.shares.unload(leader_share)
    leader_share = parts.shares.find(KEY, parts.partition)
    parts.answer(ErrorCode.FENCED_LEADER_EPOCH)
    assert leader_share.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_share_partition_that_cannot_be_loaded_is_loaded_again_after_a_time(
    parts: Parts,
) -> None:
    """At once, a client of librdkafka sent 4,000 fetches a second. Each logged an error."""
    leader_share = parts.shares.find(KEY, parts.partition)
    parts.answer(ErrorCode.INVALID_REQUEST)
    assert parts.shares.take_error(leader_share) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert parts.shares.find(KEY, parts.partition) is leader_share
    assert leader_share.error is ErrorCode.NONE, "the next fetch waits"
    assert not parts.requests
    parts.checked.clear()
    parts.timers.pop()()
    assert parts.checked == [KEY], "waiting fetches load it again"
    again = parts.shares.find(KEY, parts.partition)
    parts.answer(start_offset=0)
    assert parts.shares.get_loaded(KEY) is again


def test_another_leadership_begins_anew(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.partition.leader_epoch = 4
    assert parts.shares.find(KEY, parts.partition) is not leader_share
    assert parts.requests.pop()[0] == ReadState(KEY, 4)
    parts.shares.on_leadership(parts.partition)
    assert parts.shares.find(KEY, parts.partition).shares is None


def test_a_group_without_sessions_is_forgotten_when_its_records_are_released(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.shares.release("m", "g")
    parts.shares.mark_unused("g")
    assert parts.shares.get_loaded(KEY) is leader_share
    released = parts.answer()
    assert isinstance(released, WriteState)
    assert released.batches == [StateBatch(0, 1, DeliveryState.AVAILABLE, 0)]
    assert parts.shares.get_loaded(KEY) is None


def test_a_group_without_sessions_is_not_forgotten_while_a_change_is_stored(parts: Parts) -> None:
    """It would be read again before that change is there."""
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.clock.now_ms += LOCK_MS
    parts.timers.pop()()
    parts.shares.mark_unused("g")
    assert parts.shares.get_loaded(KEY) is leader_share
    parts.answer()
    assert parts.shares.get_loaded(KEY) is None


def test_a_group_that_has_a_session_again_is_kept(parts: Parts) -> None:
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 1))
    parts.shares.mark_unused("g")
    parts.shares.find(KEY, parts.partition)
    parts.accept(leader_share, 0, 1)
    parts.answer()
    assert parts.shares.get_loaded(KEY) is leader_share


def test_an_unused_share_partition_whose_deleted_records_expire_is_loaded_again(
    parts: Parts,
) -> None:
    """It stayed loaded. After a reset of its offsets, the next member got records from the start
    offset before."""
    leader_share = parts.loaded()
    parts.acquire(leader_share, RecordBatch(0, 4))
    parts.shares.release("m", "g")
    parts.answer(ErrorCode.NETWORK_EXCEPTION)
    parts.partition.log.log_start_offset = 10
    parts.shares.find(KEY, parts.partition)
    parts.shares.mark_unused("g")
    assert parts.shares.get_loaded(KEY) is leader_share, "a member may have its records"
    parts.clock.now_ms += LOCK_MS
    parts.timers.pop()()
    assert not parts.requests, "deleted records have no state"
    assert parts.shares.get_loaded(KEY) is None


def test_the_end_of_many_sessions_does_not_search_the_share_partitions_of_all_groups(
    parts: Parts,
) -> None:
    """A connection that closed with 2,000 sessions took 20 million steps in one turn."""
    group_id = counting_comparisons(str)
    groups = [group_id(f"g{number}") for number in range(100)]
    for group in groups:
        parts.shares.find(SharePartitionKey(group, topic_id(1), 0), parts.partition)
    group_id.times = 0
    for group in groups:
        parts.shares.release("m", group)
        parts.shares.mark_unused(group)
    assert group_id.times < 10 * len(groups)
