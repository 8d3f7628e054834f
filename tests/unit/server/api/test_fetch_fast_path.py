"""A follower's fast path gives the answers of the long one, and leaves it what is not plain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.replication.partition import Partition
from kafkapy.server.api.fetch_fast_path import FetchFastPath
from kafkapy.server.coordinators.coordinator_log import append_and_wait
from tests.harness.cores.followers import Follower
from tests.harness.cores.hot_path import Client, produce
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import batch, partition_state

PARTITIONS = 3


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    for index in range(PARTITIONS):
        parts.lead(index=index, isr=(1, 2, 3))
    parts.announce("t")
    return parts


def follower(parts: Parts, broker_id: int = 2) -> Follower:
    """One that has what there is, and whose next plain fetch goes the fast path."""
    found = Follower(parts, broker_id, PARTITIONS)
    found.begin()
    found.send(0)
    fire(parts)
    found.answer()
    found.general_requests = 0
    return found


def fire(parts: Parts) -> None:
    """Advance the clock and fire the timers, so that waiting fetches expire."""
    parts.clock.now_ms += 600
    parts.timers.fire()


def append(parts: Parts, index: int = 0, count: int = 1) -> None:
    parts.replicas.append("t", index, batch(count), 1, 9)


def partition(parts: Parts, index: int = 0) -> Partition:
    return parts.replicas.partitions["t"][index]


def without_fast_path(asking: Follower) -> Follower:
    """The same follower on the general path only."""
    dispatcher = asking.client.connection._dispatcher
    dispatcher._prepare_fast_path = lambda *_: None  # type: ignore[method-assign]
    fast_path = asking.client.connection.fast_path
    assert fast_path is not None
    fast_path.close()
    asking.client.connection.fast_path = None
    return asking


Answers = list[FetchResponse | None]


def appended(parts: Parts, asking: Follower) -> Answers:
    asking.send(0)
    before = asking.answer()
    append(parts, count=2)
    return [before, asking.answer()]


def already_there(parts: Parts, asking: Follower) -> Answers:
    append(parts)
    append(parts, 2)
    asking.send(0)
    return [asking.answer()]


def expired(parts: Parts, asking: Follower) -> Answers:
    asking.send(0)
    fire(parts)
    return [asking.answer()]


def high_watermark_of_another(parts: Parts, asking: Follower) -> Answers:
    asking.send(0)
    partition(parts, 1).log.update_high_watermark(0)
    append(parts, 1)
    first = asking.answer()
    asking.has(1, 1)
    asking.send(1)
    for replica in partition(parts, 1).remote_replicas.values():
        replica.log_end_offset = 1
    partition(parts, 1).maybe_increment_high_watermark(0)
    append(parts, 2)
    return [first, asking.answer()]


def no_leader_any_more(parts: Parts, asking: Follower) -> Answers:
    asking.send(0)
    partition(parts, 1).is_leader = False
    parts.replicas.check_delayed_requests(partition(parts, 1))
    return [asking.answer()]


def another_epoch(parts: Parts, asking: Follower) -> Answers:
    asking.send(0)
    parts.lead(index=0, isr=(1, 2, 3), leader_epoch=1, partition_epoch=1)
    first = asking.answer()
    asking.leader_epoch = 1
    asking.send(0)
    append(parts)
    return [first, asking.answer()]


def out_of_range(parts: Parts, asking: Follower) -> Answers:
    asking.offsets[0] = 9
    asking.send(0)
    return [asking.answer()]


def too_large_for_the_rest(parts: Parts, asking: Follower) -> Answers:
    append(parts)
    append(parts)
    asking.send(0, max_bytes=1)
    return [asking.answer()]


def causes(parts: Parts, asking: Follower, index: int) -> Answers:
    """A coordinator appends to a partition as soon as a record of partition 1 is replicated."""
    asking.send(0)
    append_and_wait(
        parts.replicas, TopicPartition("t", 1), batch(1), -1, parts.clock.now_ms + 500,
        lambda error, offset: append(parts, index),
    )  # fmt: skip
    first = asking.answer()
    asking.has(1, 1)
    for replica in partition(parts, 1).remote_replicas.values():
        replica.log_end_offset = 1
    asking.send(1)
    second = asking.answer()
    assert second is not None, "the fetch waits beside records"
    return [first, second]


def causes_records_of_a_later_partition(parts: Parts, asking: Follower) -> Answers:
    return causes(parts, asking, 2)


def causes_records_of_an_earlier_partition(parts: Parts, asking: Follower) -> Answers:
    return causes(parts, asking, 0)


@pytest.mark.parametrize(
    "scene",
    [appended, already_there, expired, high_watermark_of_another, no_leader_any_more,
     another_epoch, out_of_range, too_large_for_the_rest,
     causes_records_of_a_later_partition, causes_records_of_an_earlier_partition],
)  # fmt: skip
def test_both_ways_answer_the_same(
    tmp_path: Path, scene: Callable[[Parts, Follower], Answers]
) -> None:
    answers = []
    for way in (lambda asking: asking, without_fast_path):
        parts = Parts(tmp_path / way.__name__)
        for index in range(PARTITIONS):
            parts.lead(index=index, isr=(1, 2, 3))
        parts.announce("t")
        answers.append(scene(parts, way(follower(parts))))
    for short, long in zip(*answers, strict=True):
        assert short == long


def test_a_plain_fetch_does_not_go_the_general_path(parts: Parts) -> None:
    asking = follower(parts)
    assert isinstance(asking.client.connection.fast_path, FetchFastPath)
    for offset in range(3):
        asking.send(0)
        assert asking.answer() is None
        assert len(parts.replicas.fetch_purgatory) == 1
        append(parts)
        assert asking.row().high_watermark == 0
        asking.has(0, offset + 1)
    assert asking.general_requests == 0
    assert len(parts.replicas.fetch_purgatory) == 0
    assert partition(parts).remote_replicas[2].log_end_offset == 2


def test_a_fetch_commits_what_all_have(parts: Parts) -> None:
    first, second, producer = follower(parts), follower(parts, 3), Client(parts)
    for asking in (first, second):
        asking.send(0)
    producer.sends(9, produce("t"))()
    assert producer.transport.sent == b""
    for asking in (first, second):
        asking.row()
        asking.has(0, 1)
        asking.send(0)
        assert asking.answer() is None
    assert producer.transport.sent != b""
    assert (first.general_requests, second.general_requests) == (0, 0)


def test_a_fetch_counts_for_each_partition_of_the_session(parts: Parts) -> None:
    asking = follower(parts)
    parts.clock.now_ms += 5000
    asking.send(0)
    assert asking.general_requests == 0
    now_ms = parts.clock.monotonic_ms()
    for index in range(PARTITIONS):
        assert partition(parts, index).remote_replicas[2].last_caught_up_ms == now_ms


@pytest.mark.parametrize("is_fast", [True, False])
def test_bytes_for_followers_are_no_bytes_read_by_consumers(parts: Parts, is_fast: bool) -> None:
    """Kafka: BytesOutPerSec has no replication. A dashboard showed three times the bytes."""
    asking = follower(parts) if is_fast else without_fast_path(follower(parts))
    asking.send(0)
    append(parts)
    assert asking.row().records
    assert asking.general_requests == (0 if is_fast else 1)
    assert parts.metrics.topics["t"].bytes_out == parts.metrics.topics["t"].fetches == 0


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_follower_that_caught_up_is_proposed(parts: Parts, is_fast: bool) -> None:
    parts.lead(index=1, isr=(1, 3), replicas=(1, 2, 3), leader_epoch=1, partition_epoch=1)
    parts.announce("t")
    asking = follower(parts) if is_fast else without_fast_path(follower(parts))
    proposed: list[frozenset[int]] = []
    parts.replicas.on_isr_change = lambda _, change: proposed.append(frozenset(change.isr))
    partition(parts, 1).is_live = lambda broker_id: True
    asking.leader_epoch = 1
    asking.send(1)
    assert proposed == [frozenset({1, 2, 3})]
    pending = partition(parts, 1).in_sync.pending
    assert pending is not None
    assert dict(zip(pending.isr, pending.isr_epochs, strict=True)) == {1: -1, 2: 1, 3: -1}


def test_a_wrong_epoch_of_the_session_is_refused_by_the_general_path(parts: Parts) -> None:
    asking = follower(parts)
    asking.session = (asking.session[0], 99)
    asking.send(0)
    answer = asking.answer()
    assert answer is not None
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert asking.general_requests == 1


@pytest.mark.parametrize(("version", "leader"), [(15, -1), (16, 1), (17, 1)])
def test_an_answer_has_the_version_of_its_request(parts: Parts, version: int, leader: int) -> None:
    """A refusal names the leader, where the version has a field for it (KIP-951)."""
    asking = follower(parts)
    asking.version = version
    for index in range(2):
        asking.send(index)
        fire(parts)
        asking.answer()
    asking.general_requests = 0
    asking.send(1)
    partition(parts).is_leader = False
    parts.replicas.check_delayed_requests(partition(parts))
    row = asking.row()
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert row.current_leader.leader_id == leader
    assert asking.general_requests == 0


def test_a_new_partition_of_the_session_is_waited_for_too(parts: Parts) -> None:
    asking = follower(parts)
    asking.offsets.append(0)
    asking.last_epochs.append(-1)
    parts.lead(index=PARTITIONS, isr=(1, 2, 3))
    asking.send(PARTITIONS)
    fire(parts)
    asking.answer()
    asking.general_requests = 0
    asking.send(0)
    append(parts, PARTITIONS)
    assert asking.row().partition_index == PARTITIONS
    assert asking.general_requests == 0


def test_a_fetch_of_a_throttled_leader_goes_the_general_path(parts: Parts) -> None:
    asking = follower(parts)
    parts.replicas.quotas.leader.limit = 1
    asking.send(0)
    assert asking.general_requests == 1


def test_a_throttle_that_begins_while_a_fetch_waits(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    everyone = {"leader_replication_throttled_replicas": "*"}
    parts.apply_leader_and_isr(
        partition_state(1, (1, 2)), partition_state(1, (1, 3), (1, 2, 3), partition=1), **everyone
    )
    parts.announce("t")
    parts.replicas.is_live = lambda broker_id: False  # type: ignore[method-assign]
    asking = Follower(parts, 2, 2)
    asking.begin()
    asking.send(0)
    fire(parts)
    asking.answer()
    asking.send(0)
    quota = parts.replicas.quotas.leader
    quota.limit = 1
    append(parts)
    size = len(asking.row().records or b"")
    assert quota.rate(parts.clock.monotonic_ms()) == size
    assert quota.is_exceeded(parts.clock.monotonic_ms())
    assert asking.general_requests == 2


def test_a_leader_calls_a_parked_follower(parts: Parts) -> None:
    asking = follower(parts)
    asking.send(0)
    parts.lead("u", isr=(1, 2))
    answer = asking.answer()
    assert answer is not None
    assert answer.responses == []


def test_a_connection_that_ends_is_watched_no_more(parts: Parts) -> None:
    parked, idle = follower(parts), follower(parts, 3)
    parked.send(0)
    idle.send(0)
    append(parts)
    idle.answer()
    for asking in (parked, idle):
        asking.client.connection.connection_lost(None)
    assert len(parts.replicas.fetch_purgatory) == 0
    assert parts.replicas.fetch_purgatory._watchers == {}
    append(parts)


def test_a_consumer_has_no_lane(parts: Parts) -> None:
    asking = Follower(parts, -1, PARTITIONS)
    asking.begin()
    for _ in range(3):
        asking.send(0, max_wait_ms=0)
        asking.answer()
    assert asking.client.connection.fast_path is None
