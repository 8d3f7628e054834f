"""The share coordinator with a pretend log: what it answers, writes, and finds again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import DeliveryState, SharePartitionKey, StateBatch
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.shares.messages import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareEffects,
    StateRequest,
    StateResult,
    WriteState,
)
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.cores.consumer_shell import FakeTopics
from tests.harness.cores.ports import ManualClock

ACKED, FREE = DeliveryState.ACKNOWLEDGED, DeliveryState.AVAILABLE
CONFIG = ShareConfig(
    share_coordinator_state_topic_num_partitions=1,
    share_coordinator_snapshot_update_records_per_snapshot=2,
)


_IN_LOG = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


class Shell:
    """One partition of the topic. Appends are replicated at once, unless they are held."""

    def __init__(self) -> None:
        self.topics = FakeTopics()
        self.key = SharePartitionKey("g", self.topics.create("t", 2), 0)
        self.clock = ManualClock()
        self.log: list[RecordData] = []
        self.held: list[Append] | None = None
        self.append_error = ErrorCode.NONE
        self.answers: dict[str, StateResult] = {}
        self.sent = 0
        self.coordinator = self.load()

    def load(self, leader_epoch: int = 0) -> ShareCoordinator:
        coordinator = ShareCoordinator(CONFIG, self.clock, self.topics)
        assert coordinator.start_loading(0, leader_epoch)
        if self.log:
            coordinator.replay_batches(0, build_batch(self.log))
        coordinator.finish_loading(0, 0)
        coordinator.replicated_up_to(0, leader_epoch, len(self.log))
        self.coordinator = coordinator
        return coordinator

    def send(self, request: StateRequest) -> str:
        """The token of a request."""
        self.sent += 1
        token = str(self.sent)
        self.perform(self.coordinator.handle(0, token, request))
        return token

    def ask(self, request: StateRequest) -> StateResult:
        return self.answers[self.send(request)]

    def perform(self, effects: ShareEffects) -> None:
        for token, result in effects.replies:
            assert token not in self.answers
            self.answers[str(token)] = result
        for append in effects.appends:
            if self.held is None:
                self.complete(append, self.append_error)
            else:
                self.held.append(append)

    def complete(self, append: Append, error: ErrorCode = ErrorCode.NONE) -> None:
        offset = -1
        if error in _IN_LOG:
            offset = len(self.log)
            self.log += append.records
        self.perform(self.coordinator.append_completed(0, append.append_id, error, offset))

    def maintain(self) -> list[int]:
        """The number of records that each turn writes."""
        turns = []
        for effects in self.coordinator.maintain():
            turns.append(len(effects.appends))
            self.perform(effects)
        return turns

    def write(self, first: int, last: int, **changes: int) -> WriteState:
        batches = (StateBatch(first, last, ACKED, 1),)
        write = WriteState(self.key, 1, 0, 0, 0, batches)
        return replace(write, **changes)  # type: ignore[arg-type]


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    assert shell.ask(InitializeState(shell.key, 1, 0)).error is ErrorCode.NONE
    return shell


def read(shell: Shell, leader_epoch: int = 0) -> StateResult:
    return shell.ask(ReadState(shell.key, leader_epoch))


def test_state_is_read_as_written_and_after_a_replay(shell: Shell) -> None:
    for first in (0, 2, 4, 8):  # with a snapshot after two updates
        assert shell.ask(shell.write(first, first + 1)).error is ErrorCode.NONE
    shell.ask(shell.write(20, 20, start_offset=2, delivery_complete_count=9))
    before = read(shell)
    assert before == StateResult(
        state_epoch=1,
        start_offset=2,
        delivery_complete_count=9,
        batches=(
            StateBatch(2, 5, ACKED, 1),
            StateBatch(8, 9, ACKED, 1),
            StateBatch(20, 20, ACKED, 1),
        ),
    )
    assert [record.key[1] for record in shell.log if record.key] == [0, 1, 1, 0, 1, 1]
    shell.load()
    assert read(shell) == before
    summary = shell.ask(ReadSummary(shell.key))
    assert summary == replace(before, batches=())


def test_an_earlier_leader_and_an_earlier_state_are_fenced(shell: Shell) -> None:
    assert read(shell, leader_epoch=3).leader_epoch == 0
    assert shell.ask(shell.write(0, 1)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert read(shell, leader_epoch=2).error is ErrorCode.FENCED_LEADER_EPOCH
    shell.load()
    assert shell.ask(shell.write(0, 1)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert shell.ask(InitializeState(shell.key, 0, 5)).error is ErrorCode.FENCED_STATE_EPOCH
    assert shell.ask(InitializeState(shell.key, 2, 5)).error is ErrorCode.NONE
    write = shell.write(0, 1, leader_epoch=3)
    assert shell.ask(write).error is ErrorCode.FENCED_STATE_EPOCH
    assert read(shell, leader_epoch=3).start_offset == 5
    assert read(shell, leader_epoch=3).batches == ()


def test_a_write_for_the_state_of_a_deleted_group_is_fenced(shell: Shell) -> None:
    """The epochs of the next group of its name begin anew."""
    assert shell.ask(InitializeState(shell.key, 5, 0)).error is ErrorCode.NONE
    write = shell.write(0, 1, state_epoch=5, start_offset=1_000)
    assert shell.ask(DeleteState(shell.key)).error is ErrorCode.NONE
    assert shell.ask(InitializeState(shell.key, 2, 0)).error is ErrorCode.NONE
    assert shell.ask(write).error is ErrorCode.FENCED_STATE_EPOCH
    assert read(shell).start_offset == 0


def test_an_initialization_that_is_sent_again_changes_nothing(shell: Shell) -> None:
    """Its first answer was lost, and members have acknowledged records since."""
    shell.ask(shell.write(0, 1, start_offset=2))
    before = read(shell)
    assert shell.ask(InitializeState(shell.key, 1, 0)) == StateResult()
    assert read(shell) == before


def test_a_write_that_comes_late_undoes_nothing(shell: Shell) -> None:
    """It was sent again, and the first one was still on its way."""
    released = replace(shell.write(3, 4), batches=(StateBatch(3, 4, FREE, 1),), start_offset=1)
    accepted = replace(released, batches=(StateBatch(3, 4, ACKED, 2),), start_offset=3)
    for write in (released, accepted, released):
        assert shell.ask(write).error is ErrorCode.NONE
    before = read(shell)
    assert (before.start_offset, before.batches) == (3, accepted.batches)
    shell.load()
    assert read(shell) == before


def test_the_lag_stays_0_when_a_write_of_fewer_completed_records_comes_late(shell: Shell) -> None:
    first = shell.write(39, 56, start_offset=38, delivery_complete_count=18)
    last = shell.write(38, 59, start_offset=38, delivery_complete_count=22)
    for write in (first, last, first):
        assert shell.ask(write).error is ErrorCode.NONE
    assert read(shell).delivery_complete_count == 22
    shell.load()
    assert read(shell).delivery_complete_count == 22
    assert shell.ask(replace(last, start_offset=60, delivery_complete_count=0)) == StateResult()
    assert shell.ask(first) == StateResult()
    assert (read(shell).start_offset, read(shell).delivery_complete_count) == (60, 0)


@pytest.mark.parametrize(
    "batches",
    [
        [StateBatch(3, 2, ACKED, 1)],
        [StateBatch(-1, 2, ACKED, 1)],
        [StateBatch(1, 2, ACKED, -1)],
        [StateBatch(1, 2, ACKED, 1), StateBatch(2, 3, ACKED, 1)],
        [StateBatch(n, n, ACKED, 1) for n in range(20_001)],
    ],
    ids=["upside down", "negative", "negative count", "overlapping", "too many"],
)
def test_batches_that_are_none(shell: Shell, batches: list[StateBatch]) -> None:
    write = replace(shell.write(0, 1), batches=batches)
    assert shell.ask(write).error is ErrorCode.INVALID_REQUEST
    assert read(shell).batches == ()


def test_requests_wait_for_the_append_before_them(shell: Shell) -> None:
    shell.held = []
    tokens = [shell.send(shell.write(0, 1)), shell.send(shell.write(2, 3))]
    tokens.append(shell.send(ReadState(shell.key, 0)))
    assert len(shell.held) == 1
    shell.complete(shell.held.pop(), ErrorCode.NOT_ENOUGH_REPLICAS)
    assert shell.answers[tokens[0]].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert tokens[1] not in shell.answers
    shell.complete(shell.held.pop())
    assert shell.answers[tokens[1]].error is ErrorCode.NONE
    assert shell.answers[tokens[2]].batches == (StateBatch(2, 3, ACKED, 1),)


def test_a_record_that_is_late_counts(shell: Shell) -> None:
    shell.held = []
    token = shell.send(shell.write(0, 1))
    shell.complete(shell.held.pop(), ErrorCode.REQUEST_TIMED_OUT)
    assert shell.answers[token].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.held = None
    before = read(shell)
    assert before.batches == (StateBatch(0, 1, ACKED, 1),)
    shell.load()
    assert read(shell) == before


def test_what_does_not_exist(shell: Shell) -> None:
    other = shell.key._replace(group_id="other")
    assert shell.ask(ReadState(other, 0)).error is ErrorCode.INVALID_REQUEST
    write = replace(shell.write(0, 1), key=other)
    assert shell.ask(write).error is ErrorCode.INVALID_REQUEST
    assert shell.ask(ReadSummary(other)) == StateResult()
    for partition, error in (
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, ErrorCode.INVALID_REQUEST),
    ):
        key = shell.key._replace(partition=partition)
        assert shell.ask(ReadState(key, 0)).error is error
    shell.topics.is_known = False
    assert read(shell).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_deleted_state_is_gone(shell: Shell) -> None:
    assert shell.ask(DeleteState(shell.key)).error is ErrorCode.NONE
    assert read(shell).error is ErrorCode.INVALID_REQUEST
    shell.load()
    assert read(shell).error is ErrorCode.INVALID_REQUEST
    assert shell.ask(DeleteState(shell.key)).error is ErrorCode.NONE


def test_another_leader(shell: Shell) -> None:
    shell.held = []
    tokens = [shell.send(shell.write(0, 1)), shell.send(shell.write(2, 3))]
    shell.perform(shell.coordinator.unload(0, 1))
    shell.complete(shell.held.pop(), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    errors = [shell.answers[token].error for token in tokens]
    assert errors == [ErrorCode.NOT_COORDINATOR] * 2
    shell.perform(shell.coordinator.shutdown())
    assert read(shell).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_unused_states_do_not_keep_the_log(shell: Shell) -> None:
    cold = shell.key._replace(partition=1)
    shell.ask(InitializeState(cold, 1, 0))
    shell.clock.now_ms += 300_000
    shell.ask(InitializeState(shell.key, 2, 0))
    assert shell.coordinator.prunable_offset(0) == 1
    shell.maintain()
    assert shell.coordinator.prunable_offset(0) == 2
    shell.clock.now_ms += 300_000  # all are unused: nothing would be gained
    shell.maintain()
    assert len(shell.log) == 4
    shell.topics.delete("t")
    shell.maintain()
    assert shell.coordinator.prunable_offset(0) == len(shell.log) == 6


def test_the_search_for_unused_states_does_not_stop_the_broker(shell: Shell) -> None:
    """Each was compared with all others: 16,000 took 8.6 s, every five minutes."""
    comparisons = 0

    class Index(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return int.__eq__(self, other)

    count = 100
    topic_id = shell.topics.create("many", count)
    for index in range(count):
        shell.ask(InitializeState(SharePartitionKey("g", topic_id, Index(index)), 1, 0))
    shell.clock.now_ms += 300_000
    shell.ask(InitializeState(shell.key, 2, 0))
    comparisons = 0
    shell.maintain()
    assert len(shell.log) == 1 + count + 1 + count
    assert comparisons < count


MANY = 100


@pytest.fixture
def cold(shell: Shell) -> list[SharePartitionKey]:
    """Many share partitions that are unused, beside one that is used."""
    topic_id = shell.topics.create("many", MANY)
    keys = [SharePartitionKey("g", topic_id, index) for index in range(MANY)]
    for key in keys:
        shell.ask(InitializeState(key, 1, 0))
    shell.clock.now_ms += 300_000
    shell.ask(InitializeState(shell.key, 2, 0))
    return keys


def test_snapshots_of_many_unused_states_stop_no_client(
    shell: Shell, cold: list[SharePartitionKey]
) -> None:
    """All were written in one turn of the event loop: 10,000 in seconds."""
    turns = shell.maintain()
    assert sum(turns) == MANY
    assert max(turns) <= 32


def test_states_that_change_between_two_turns_of_the_maintenance(
    shell: Shell, cold: list[SharePartitionKey]
) -> None:
    turns = shell.coordinator.maintain()
    shell.perform(next(turns))
    assert shell.ask(DeleteState(cold[-1])).error is ErrorCode.NONE
    shell.held = []
    shell.send(InitializeState(cold[-2], 2, 5))
    before = len(shell.held)
    shell.perform(next(turns))
    shell.perform(next(turns))
    shell.perform(next(turns))
    assert len(shell.held) - before == MANY - 32 - 2
    assert next(turns, None) is None


def test_the_maintenance_ends_when_another_broker_leads(
    shell: Shell, cold: list[SharePartitionKey]
) -> None:
    turns = shell.coordinator.maintain()
    shell.perform(next(turns))
    shell.perform(shell.coordinator.unload(0))
    assert next(turns, None) is None


# Appends that were not replicated in time: the log has them, but a new leader may not.


def send_late(shell: Shell, request: StateRequest) -> None:
    """A request that changes something, which is not replicated in time."""
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    assert shell.ask(request).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE


@pytest.mark.parametrize("kind", ["initialize", "read", "summary", "delete"])
def test_nothing_is_answered_that_a_new_leader_may_not_know(shell: Shell, kind: str) -> None:
    replicated = len(shell.log)
    change, again = {
        "initialize": (InitializeState(shell.key, 2, 7), InitializeState(shell.key, 2, 7)),
        "read": (shell.write(0, 1, start_offset=2), ReadState(shell.key, 0)),
        "summary": (shell.write(0, 1, start_offset=2), ReadSummary(shell.key)),
        "delete": (DeleteState(shell.key), DeleteState(shell.key)),
    }[kind]
    send_late(shell, change)
    shell.append_error = ErrorCode.REQUEST_TIMED_OUT
    assert shell.ask(again).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    told = shell.ask(again)
    assert told.error is ErrorCode.NONE
    length = len(shell.log)
    assert shell.ask(again) == told
    assert len(shell.log) == length
    del shell.log[replicated : length - 1]  # the last one says all
    shell.load()
    assert shell.ask(again) == told
    assert len(shell.log) == replicated + 1


@pytest.mark.parametrize(
    "error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND], ids=str
)
def test_a_later_record_that_is_replicated_says_that_earlier_ones_are_too(
    shell: Shell, error: ErrorCode
) -> None:
    send_late(shell, shell.write(0, 1))
    shell.append_error = error
    shell.ask(InitializeState(shell.key._replace(partition=1), 1, 0))
    length = len(shell.log)
    assert read(shell).batches == (StateBatch(0, 1, ACKED, 1),)
    assert len(shell.log) == length


def test_nothing_is_pruned_for_a_snapshot_that_a_new_leader_may_not_have(shell: Shell) -> None:
    send_late(shell, InitializeState(shell.key, 2, 7))
    assert shell.coordinator.prunable_offset(0) == 0
    read(shell)
    assert shell.coordinator.prunable_offset(0) == 2
