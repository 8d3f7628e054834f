"""Followers whose leader, disk or connection misbehaves, and how fast they may fetch."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.uuid import Uuid
from kafkapy.replication.follower_fetcher import FollowerFetcher, FollowState, LeaderRow
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuota
from kafkapy.storage.log_manager import LogManager
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.cores.replicas import BACKOFF_MS, TP, ReplicaSet
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.partitions import (
    LAG_MAX_MS,
    batch,
    make_partition,
    partition_state,
)


@pytest.fixture
def three(tmp_path: Path) -> ReplicaSet:
    return ReplicaSet(tmp_path, 3)


def test_two_histories_of_one_epoch_end_as_the_leaders(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A leader whose disk was torn led on in its epoch: a batch of its now covers the end of a
    follower's log. Epochs do not tell them apart, and refused for good it would never follow."""
    two = ReplicaSet(tmp_path, 2)
    two.elect(1, 0, 2)
    two.produce(1, "m1", "m2")
    two.settle(2)
    two.brokers[1].partition.log.truncate_to(1)
    two.brokers[1].partition.append_as_leader(
        batch(count=3, value=b"torn"), 1, two.now_ms, two.now_ms, 11
    )
    two.elect(1, 0, 2)
    two.settle(2)
    assert [two.brokers[i].values for i in (1, 2)] == [["m1", "torn", "torn", "torn"]] * 2
    assert "Truncating t-0 to offset 1 below high watermark 2" in caplog.text


def test_a_leader_that_sends_what_a_follower_has_cuts_nothing(tmp_path: Path) -> None:
    two = ReplicaSet(tmp_path, 2)
    two.elect(1, 0, 2)
    two.produce(1, "m1", "m2")
    two.settle(2)
    fetcher, log = two.brokers[2].fetcher, two.brokers[2].partition.log
    assert fetcher is not None
    request = fetcher.next_fetch(two.now_ms)
    assert request is not None
    again = two.brokers[1].partition.log.read(0, 1 << 20, 2, True).records
    row = LeaderRow(TP, 0, 2, 0, None, again)
    fetcher.on_response(request, 0, 1, [row], two.now_ms, two.now_ms)
    assert two.brokers[2].values == ["m1", "m2"]
    assert (log.log_end_offset, log.high_watermark) == (2, 2)


def test_a_follower_without_descriptors_goes_on_later(
    three: ReplicaSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.elect(1, 0, 2, 3)
    three.produce(1, "a")

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    log = three.brokers[2].partition.log
    with monkeypatch.context() as short:
        short.setattr(type(log.segments.active), "append", refuse)
        three.fetch(2)
    assert three.failures == []
    assert three.fetch(2) == "nothing to fetch"
    three.now_ms += BACKOFF_MS
    three.settle(2)
    assert three.brokers[2].values == ["a"]


def test_other_errors_are_asked_again_soon_and_then_ever_later_up_to_the_back_off(
    three: ReplicaSet,
) -> None:
    three.elect(1, 0, 2, 3)
    three.brokers[1].partition.is_leader = False
    fetcher = three.brokers[2].fetcher
    assert fetcher is not None
    for delay_ms in (20, 40, 80, 160, 320, 640, BACKOFF_MS, BACKOFF_MS):
        assert three.fetch(2) == "NOT_LEADER_OR_FOLLOWER"
        assert three.fetch(2) == "nothing to fetch"
        assert fetcher.next_due_ms() == three.now_ms + delay_ms
        three.now_ms += delay_ms
    three.brokers[1].partition.is_leader = True
    assert three.fetch(2) == "ok"
    three.brokers[1].partition.is_leader = False
    assert three.fetch(2) == "NOT_LEADER_OR_FOLLOWER"
    assert fetcher.next_due_ms() == three.now_ms + 20


def test_an_error_that_stays_is_logged_once_a_minute(
    three: ReplicaSet, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic of garbled state is unknown to its leader until somebody mends it."""
    caplog.set_level(logging.INFO)
    three.elect(1, 0, 2, 3)
    fetcher = three.brokers[2].fetcher
    assert fetcher is not None

    def ask_for(seconds: int, error: ErrorCode) -> int:
        caplog.clear()
        for _ in range(seconds):
            request = fetcher.next_fetch(three.now_ms)
            assert request is not None
            row = LeaderRow(TP, error, -1, -1, None, b"")
            fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
            three.now_ms += 1000
        return sum(f"answered {error.name} for t-0" in message for message in caplog.messages)

    assert ask_for(60, ErrorCode.UNKNOWN_TOPIC_ID) == 1
    assert ask_for(60, ErrorCode.UNKNOWN_TOPIC_ID) == 1
    assert ask_for(1, ErrorCode.NOT_LEADER_OR_FOLLOWER) == 1
    assert ask_for(1, ErrorCode.UNKNOWN_TOPIC_ID) == 1


def test_a_lost_connection_begins_a_new_session(three: ReplicaSet) -> None:
    three.elect(1, 0, 2, 3)
    assert three.fetch(2) == "ok"
    fetcher = three.brokers[2].fetcher
    assert fetcher is not None
    fetcher.on_unreachable(three.now_ms)
    three.now_ms += BACKOFF_MS
    request = fetcher.next_fetch(three.now_ms)
    assert request is not None
    assert (request.session_epoch, len(request.rows)) == (0, 1)


def test_an_answer_from_before_a_truncation_is_not_applied(three: ReplicaSet) -> None:
    three.elect(1, 0, 2, 3)
    three.produce(1, "a", "b")
    three.settle(2)
    broker = three.brokers[2]
    assert broker.fetcher is not None
    request = broker.fetcher.next_fetch(three.now_ms)
    assert request is not None
    broker.partition.log.truncate_to(1)
    row = LeaderRow(TP, 0, 9, 0, None, b"")
    broker.fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
    assert broker.partition.log.high_watermark <= 1


def test_an_answer_for_another_end_of_the_log_cuts_nothing(three: ReplicaSet) -> None:
    three.elect(1, 0, 2, 3)
    three.produce(1, "a", "b")
    three.settle(2)
    broker = three.brokers[2]
    assert broker.fetcher is not None
    request = broker.fetcher.next_fetch(three.now_ms)
    assert request is not None
    three.produce(1, "c")
    records = three.brokers[1].partition.log.read(2, 1 << 20, 3, True).records
    broker.partition.log.append_as_follower(records, three.now_ms, 0)
    row = LeaderRow(TP, 0, 2, 0, (0, 1), b"")
    broker.fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
    assert broker.values == ["a", "b", "c"]


def test_an_answer_of_a_deleted_topic_is_not_of_the_one_of_its_name(three: ReplicaSet) -> None:
    """Both begin at epoch 0 and offset 0: the new topic had the old one's records on a follower,
    and no epoch told them from the leader's."""
    three.elect(1, 0, 2, 3)
    three.produce(1, "deleted")
    broker = three.brokers[2]
    fetcher = broker.fetcher
    assert fetcher is not None
    request = fetcher.next_fetch(three.now_ms)
    assert request is not None
    records = three.brokers[1].partition.log.read(0, 1 << 20, 1, True).records
    fetcher.unfollow(TP)
    broker.manager.delete_log(TP)
    topic_id = Uuid(bytes(range(1, 17)))
    log = broker.manager.get_or_create_log(TP, topic_id, {}, True)
    partition = Partition(TP, topic_id, log, 2, LAG_MAX_MS)
    partition.make_follower(partition_state(1, (1, 2, 3), topic_id=topic_id))
    fetcher.follow(partition)
    row = LeaderRow(TP, 0, 1, 0, None, records)
    assert fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms) == []
    assert log.log_end_offset == 0
    following = fetcher.next_fetch(three.now_ms)
    assert following is not None
    assert [each.topic_id for each in following.rows] == [topic_id]


def test_records_of_a_later_epoch_than_the_leaders_are_not_taken_over(three: ReplicaSet) -> None:
    """A leader sends records from its file. While it does so, another is elected, and the file is
    cut and has that one's records: they followed those that are cut, and no later fetch saw it."""
    size = 1 << 13
    three.elect(1, 0, 2, 3)
    three.produce(1, *("a" * size for _ in range(2)))
    three.settle(2, 3)
    file = three.brokers[1].partition.log.segments.active.records
    begin = file.size
    three.produce(1, *("b" * size for _ in range(10)))
    fetcher = three.brokers[3].fetcher
    assert fetcher is not None
    request = fetcher.next_fetch(three.now_ms)
    assert request is not None
    half = (file.size - begin) // 2
    sent = file.read(begin, half)
    three.elect(2, 1, 1)
    for _ in range(10):
        three.produce(2, "c" * size)
        three.settle(1)
    sent += file.read(begin + half, half)
    row = LeaderRow(TP, 0, 2, 0, None, sent)
    fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
    assert three.brokers[3].partition.log.epochs.latest == 0
    three.elect(2, 2, 1, 3)
    third = three.brokers[3]
    third.fetcher = FollowerFetcher(2, 1 << 15, BACKOFF_MS, third.quota, three.failures.append)
    third.fetcher.follow(third.partition)
    three.settle(1, 3)
    assert three.brokers[1].values == three.brokers[2].values == third.values


def test_damaged_records_are_not_taken_over(three: ReplicaSet) -> None:
    three.elect(1, 0, 2, 3)
    three.produce(1, "a")
    broker = three.brokers[2]
    assert broker.fetcher is not None
    request = broker.fetcher.next_fetch(three.now_ms)
    assert request is not None
    good = three.brokers[1].partition.log.read(0, 1 << 20, 1, True).records
    bad = bytes(good[:-1]) + bytes([good[-1] ^ 1])
    row = LeaderRow(TP, ErrorCode.NONE, 1, 0, None, bad)
    broker.fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
    assert broker.values == []
    assert broker.fetcher.state(TP) is FollowState.DELAYED


def test_a_log_that_cannot_be_cut_ends_no_fetcher(
    three: ReplicaSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log parts from its leader's, it cannot be read."""
    three.elect(1, 0, 2, 3)
    three.produce(1, "a")
    three.settle(2)
    broker = three.brokers[2]
    assert broker.fetcher is not None
    request = broker.fetcher.next_fetch(three.now_ms)
    assert request is not None

    def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "no valid batch")

    monkeypatch.setattr(type(broker.partition.log), "truncate_to", refuse)
    row = LeaderRow(TP, ErrorCode.NONE, 0, 0, (0, 0), b"")
    assert broker.fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms) == []
    assert broker.fetcher.state(TP) is FollowState.DELAYED
    row = LeaderRow(TP, ErrorCode.OFFSET_OUT_OF_RANGE, 0, 0, None, b"")
    three.now_ms += BACKOFF_MS
    request = broker.fetcher.next_fetch(three.now_ms)
    assert request is not None
    broker.fetcher.on_response(request, 0, 1, [row], three.now_ms, three.now_ms)
    broker.fetcher.on_leader_offsets(TP, 0, 0, three.now_ms)
    assert broker.fetcher.state(TP) is FollowState.DELAYED


def throttle(replicas: ReplicaSet, follower: int, rate: int, replica: str) -> None:
    broker = replicas.brokers[follower]
    broker.quota.limit = rate
    broker.manager.update_topic_config("t", {"follower.replication.throttled.replicas": replica})


def test_a_throttled_follower_takes_the_time_that_its_rate_says(tmp_path: Path) -> None:
    two = ReplicaSet(tmp_path, 2)
    two.elect(1, 0)
    for _ in range(40):
        two.produce(1, "x" * 900)
    two.elect(1, 1, 2)
    size, rate = two.brokers[1].partition.log.size_bytes, 4000
    throttle(two, 2, rate, "0:2")
    fetcher = two.brokers[2].fetcher
    assert fetcher is not None
    fetcher._partition_max_bytes = 1000
    start = two.now_ms
    while two.brokers[2].partition.log.size_bytes < size:
        said = two.fetch(2)
        two.now_ms += 10
        if said == "nothing to fetch":
            due = fetcher.next_due_ms()
            assert due is not None
            two.now_ms = due
    expected_ms = size * 1000 / rate
    assert expected_ms * 0.8 <= two.now_ms - start <= expected_ms * 1.2


def test_other_replicas_and_those_in_sync_are_never_held_back(tmp_path: Path) -> None:
    two = ReplicaSet(tmp_path, 2)
    two.elect(1, 0)
    two.produce(1, "a")
    two.elect(1, 1, 2)
    two.brokers[2].quota.limit = 1
    two.brokers[2].quota.record(1 << 20, two.now_ms)
    throttle(two, 2, 1, "*")
    assert two.fetch(2) == "nothing to fetch"
    throttle(two, 2, 1, "0:1")
    assert two.fetch(2) == "ok"
    throttle(two, 2, 1, "*")
    assert two.fetch(2) == "ok", "its lag is 0"
    two.produce(1, "b")
    assert two.fetch(2) == "ok"
    assert two.brokers[2].values == ["a", "b"]


def test_how_far_a_follower_is_behind(tmp_path: Path) -> None:
    three = ReplicaSet(tmp_path, 3)
    three.elect(1, 0, 2, 3)
    three.produce(1, *"abcdef")
    three.settle(2, 3)
    one_batch = len(batch(value=b"a"))
    three.brokers[3].restart()
    three.brokers[3].partition.log.truncate_to(2)
    three.elect(1, 1, 2, 3)
    fetcher = three.brokers[3].fetcher
    assert fetcher is not None
    assert fetcher.max_lag == 0
    fetcher._partition_max_bytes = one_batch
    three.fetch(3)
    assert fetcher.max_lag == 3
    three.settle(3)
    assert fetcher.max_lag == 0


def test_a_disk_that_fails_costs_the_other_partitions_of_the_answer_nothing(
    tmp_path: Path,
) -> None:
    failures: list[LogDirFailure] = []
    disk = FaultyFileSystem(Disk(), prefix=str(tmp_path / "a"))
    clock = ManualClock()
    dirs = [str(tmp_path / name) for name in ("a", "b")]
    manager = LogManager(disk, dirs, {}, clock, SeededRandom())
    manager.open()
    manager.load({})
    fetcher = FollowerFetcher(2, 1 << 20, 100, ReplicationQuota(1, 1000, 11), failures.append)
    partitions = [make_partition(manager, index) for index in range(2)]
    for partition in partitions:
        partition.make_follower(partition_state(leader=2, isr=(1, 2)))
        fetcher.follow(partition)
    fetch = fetcher.next_fetch(0)
    assert fetch is not None
    disk.fail_at, disk.for_good = disk.changes + 1, True
    rows = [LeaderRow(p.topic_partition, 0, 1, 0, None, batch()) for p in partitions]
    assert fetcher.on_response(fetch, 0, 1, rows, 0, 0) == [partitions[1]]
    assert [failure.log_dir for failure in failures] == dirs[:1]
    assert partitions[1].log.log_end_offset == 1
