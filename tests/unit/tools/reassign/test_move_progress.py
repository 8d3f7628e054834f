"""Bytes of running moves, their pace and their end."""

from __future__ import annotations

from kafkapy.admin.log_dirs import Replica
from kafkapy.admin.reassignments import Reassignment
from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.move_progress import MoveProgress, Pace, PaceMeter, measure_moves
from tests.harness.scripted.moving_cluster import SIZE_BYTES, MovingCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_new_replicas_count_against_the_old() -> None:
    moving = MovingCluster({"t": [[1, 2, 3], [1, 2]]}, down=[4])
    moving.places[T1, 2] = ("/d", "/e")
    running = {T0: Reassignment((3, 4), (1,), (3, 4, 1, 2))}
    with Cluster("b:9001", connector=moving.scripted.connect) as cluster:
        found = measure_moves(cluster, running, {Replica("t", 1, 2): "/e"})
    assert found == [
        MoveProgress(T0, SIZE_BYTES, 2 * SIZE_BYTES),  # 4 is down: nothing is there
        MoveProgress(T1, SIZE_BYTES // 4, SIZE_BYTES),
    ]


def test_the_pace_is_that_of_the_last_measurements() -> None:
    meter = PaceMeter()
    assert meter.add(0.0, 100, 1000) == Pace(None, None)
    assert meter.add(2.0, 300, 1000) == Pace(100.0, 7.0)
    for second in range(3, 20):
        pace = meter.add(float(second), 300, 1000)
    assert pace == Pace(0.0, None)
