"""What real clients said to Apache ZooKeeper, said to ours: each answer is the same, but for times,
session ids and passwords."""

from __future__ import annotations

import pytest

from tests.support.zookeeper_conversation import recorded, replayed, told


@pytest.mark.parametrize("name", ["kazoo", "kafka", "requests"])
def test_ours_answers_as_apaches(name: str) -> None:
    rows = recorded(name)
    apaches, ours = told(rows), told(replayed(rows))
    assert sum(map(len, apaches.values())) > 40
    assert apaches.keys() == ours.keys()
    for number, answers in apaches.items():
        assert ours[number] == answers, f"connection {number}"
