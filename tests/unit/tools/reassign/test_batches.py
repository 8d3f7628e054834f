"""A reassignment a few partitions at a time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.tools.reassign.batches import BatchProgress, BatchRun
from kafkapy.tools.reassign.partition_files import ReassignmentFile
from kafkapy.tools.reassign.reassignment import prepare
from tests.harness.scripted.moving_cluster import MovingCluster

PARTITIONS = [TopicPartition("t", p) for p in range(5)]
TARGETS = [[2, 3], [2, 3], [2, 3], [2, 3], [1, 2]]


class Hours:
    """A clock that goes on by an hour whenever it is looked at."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 3600
        return self.now_s


class Batched:
    """A run over TARGETS on a cluster whose partitions are all on brokers 1 and 2."""

    def __init__(self, moving: MovingCluster, size: int = 2, *, additional: bool = False) -> None:
        cluster = Cluster("b:9002", connector=moving.scripted.connect)
        rows = [(tp, tuple(to)) for tp, to in zip(PARTITIONS, TARGETS, strict=True)]
        plan = prepare(cluster, ReassignmentFile(rows), additional=additional, resume=True)
        self.seen: list[BatchProgress] = []
        self.pauses = 0
        self.interrupt_at: int | None = None
        self.stop_at: int | None = None
        self.run = BatchRun(
            cluster,
            plan,
            size,
            stuck_timeout_ms=10_000,
            on_progress=self.seen.append,
            pause=self._pause,
            clock=Hours(),
        )

    def _pause(self, seconds: float) -> None:
        self.pauses += 1
        if self.pauses == self.stop_at:
            self.run.stop()
        if self.pauses == self.interrupt_at:
            raise KeyboardInterrupt


def cluster(**options: int) -> MovingCluster:
    return MovingCluster({"t": [[1, 2]] * 5}, **options)


def batches(moving: MovingCluster) -> list[list[int]]:
    """The partitions of each request."""
    asked = moving.scripted.requests_of(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    return [[p.partition_index for t in r.topics for p in t.partitions] for r in asked]


def test_no_more_than_so_many_move_at_a_time_and_what_is_done_is_skipped() -> None:
    moving = cluster(polls_left=3)
    batched = Batched(moving)
    batched.run.run()
    assert batches(moving) == [[0, 1], [2, 3]]
    assert moving.now() == {"t": TARGETS}
    assert batched.seen[-1] == BatchProgress(5, 5, ())
    assert [p.done for p in batched.seen] == sorted(p.done for p in batched.seen)


def test_an_interruption_ends_after_the_batch_and_the_next_run_continues() -> None:
    moving = cluster(polls_left=4)
    batched = Batched(moving)
    batched.stop_at = 2
    batched.run.run()
    assert batches(moving) == [[0, 1]]
    assert [tp.partition for tp in batched.run.not_begun] == [2, 3]

    again = Batched(moving)
    again.run.run()
    assert batches(moving) == [[0, 1], [2, 3]]
    assert moving.now() == {"t": TARGETS}


def test_what_moves_already_is_waited_for_and_not_asked_for_again() -> None:
    moving = cluster(polls_left=2)
    moving.begin(PARTITIONS[3], [2, 3], 4)
    batched = Batched(moving, size=1)
    batched.run.run()
    assert batches(moving) == [[0], [1], [2]]
    assert moving.now() == {"t": TARGETS}


def test_what_moves_to_other_brokers_is_redirected() -> None:
    moving = cluster(polls_left=2)
    moving.begin(PARTITIONS[3], [1, 4], 8)
    moving.begin(PARTITIONS[4], [3, 4], 8)  # its target is where it was before
    batched = Batched(moving, size=5, additional=True)
    batched.run.run()
    assert batches(moving) == [[3, 4, 0, 1, 2]]
    assert moving.now() == {"t": TARGETS}


def test_what_moves_to_the_same_brokers_gets_the_leader_of_the_file() -> None:
    """The run gave up when that move ended, because its order of replicas was another one."""
    moving = cluster(polls_left=2)
    moving.begin(PARTITIONS[3], [3, 2], 4)
    batched = Batched(moving, size=5)
    batched.run.run()
    assert batches(moving) == [[3, 0, 1, 2]]
    assert moving.now() == {"t": TARGETS}


def test_a_broker_that_dies_and_stays_away_ends_the_run() -> None:
    moving = cluster(polls_left=0)
    batched = Batched(moving)
    moving.brokers.remove(3)
    with pytest.raises(ReassignmentFailed) as failed:
        batched.run.run()
    assert str(failed.value).startswith("Gave up waiting for t-0, t-1: broker 3 is not alive. ")


def test_a_partition_whose_only_source_dies_ends_the_run() -> None:
    """Its new brokers are alive, and have no leader to copy from."""
    moving = MovingCluster({"t": [[1]] * 5}, polls_left=0)
    batched = Batched(moving)
    batched.interrupt_at = 9  # the run waited forever
    moving.brokers.remove(1)
    with pytest.raises((ReassignmentFailed, KeyboardInterrupt)) as ended:
        batched.run.run()
    assert str(ended.value).startswith("Gave up waiting for t-0, t-1: t-0 has no leader. ")


def test_a_new_replica_whose_log_directory_fails_ends_the_run() -> None:
    moving = cluster(polls_left=0)
    batched = Batched(moving)
    batched.interrupt_at = 9  # the run waited forever
    describe = moving.scripted.script[ApiKey.METADATA]

    def with_lost_replicas(request: Any, port: int) -> Any:
        answer = describe(request, port)
        for partition in (p for topic in answer.topics for p in topic.partitions):
            partition.offline_replicas = [3]
        return answer

    moving.scripted.script[ApiKey.METADATA] = with_lost_replicas
    with pytest.raises((ReassignmentFailed, KeyboardInterrupt)) as ended:
        batched.run.run()
    assert str(ended.value).startswith(
        "Gave up waiting for t-0, t-1: the replica of t-0 on broker 3 is offline. "
    )


def test_a_move_that_somebody_cancelled_ends_the_run() -> None:
    moving = cluster(polls_left=0)
    batched = Batched(moving)
    batched.interrupt_at = 1
    with pytest.raises(KeyboardInterrupt):
        batched.run.run()
    moving.running.clear()
    with pytest.raises(ReassignmentFailed, match="t-0 does not move any more and has the repl"):
        batched.run.run()


def test_a_dry_run_begins_all_and_waits_for_none() -> None:
    moving = cluster(polls_left=0)
    Batched(moving).run.begin_all()
    assert batches(moving) == [[0, 1], [2, 3]]
