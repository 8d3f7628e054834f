"""The table of replicas while a plan is made."""

from __future__ import annotations

from kafkapy.admin.planning.rack_spread import RackSpread
from kafkapy.admin.planning.replica_balance import ReplicaTable
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.cores.assignments import brokers


def table(rows: dict[str, list[int]], *ids: int, factor: int | None = None) -> ReplicaTable:
    made = ReplicaTable(RackSpread(brokers(*ids)))
    for name, replicas in rows.items():
        made.add(TopicPartition(name[0], int(name[1])), replicas, factor or len(replicas))
    made.shrink()
    return made


def replicas(made: ReplicaTable) -> dict[str, list[int]]:
    return {f"{tp.topic}{tp.partition}": row for tp, row in made.rows()}


def test_what_is_missing_goes_where_there_is_least() -> None:
    made = table({"a0": [9, 1], "a1": [1, 9], "a2": [2, 9]}, 1, 2, 3)
    made.fill()
    assert replicas(made) == {"a0": [1, 3], "a1": [1, 2], "a2": [2, 3]}
    assert made.loads == {1: 2, 2: 2, 3: 2}


def test_what_is_too_many_goes_from_the_fullest_broker() -> None:
    made = table({"a0": [1, 2], "a1": [2, 3]}, 1, 2, 3, factor=1)
    made.fill()
    assert replicas(made) == {"a0": [1], "a1": [2]}


def test_a_broker_that_takes_many_takes_a_little_of_each_topic() -> None:
    rows = {f"{topic}{p}": [1] for topic in "abc" for p in range(2)}
    made = table(rows, 1, 2)
    made.fill()
    made.balance()
    moved = {name for name, row in replicas(made).items() if row == [2]}
    assert moved == {"a0", "b0", "c0"}


def test_no_partition_moves_twice_while_another_could_move_once() -> None:
    made = table({f"a{p}": [1, 2] for p in range(4)}, 1, 2, 3)
    made.fill()
    made.balance()
    assert sorted(made.loads.values()) == [2, 3, 3]
    assert all((row[0] != row[1] and 3 in row) or row == [1, 2] for row in replicas(made).values())
