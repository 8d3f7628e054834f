"""A consumer reads in its own rack if a replica is there, else from the leader."""

from __future__ import annotations

import pytest

from kafkapy.replication.replica_selector import ReplicaView, select_in_rack

LEADER = ReplicaView(1, "a", 100, 0)
FOLLOWERS = [
    ReplicaView(2, "b", 90, 5),
    ReplicaView(3, "b", 95, 4),
    ReplicaView(4, "b", 95, 9),
    ReplicaView(5, None, 100, 9),
    ReplicaView(6, "a", 100, 9),
]


@pytest.mark.parametrize(
    ("rack", "chosen"),
    [
        ("a", 1),  # the leader is near enough
        ("b", 4),  # the most caught up, then the one that was so last
        ("c", 1),
        ("", 1),
    ],
)
def test_the_nearest_replica(rack: str, chosen: int) -> None:
    assert select_in_rack(rack, LEADER, FOLLOWERS) == chosen
    assert select_in_rack(rack, LEADER, FOLLOWERS[::-1]) == chosen


def test_alone_the_leader_serves_everybody() -> None:
    assert select_in_rack("b", LEADER, []) == 1
