"""Recorded conversations with Apache ZooKeeper, replayed here, have the same answers.

Times, session ids and passwords may differ. Changes are durable. Noise harms no server.
"""

from __future__ import annotations

import random

import pytest

from tests.harness.cores.znodes import BytesFile
from tests.harness.cores.zookeeper_conversation import new_service, recording, replay, server_frames


@pytest.mark.parametrize("name", ["kazoo", "kafka", "requests"])
def test_ours_answers_as_apaches(name: str) -> None:
    rows = recording(name)
    apaches, ours = server_frames(rows), server_frames(replay(rows))
    assert sum(map(len, apaches.values())) > 40
    assert apaches.keys() == ours.keys()
    for number, answers in apaches.items():
        assert ours[number] == answers, f"connection {number}"


@pytest.mark.parametrize("name", ["kazoo", "kafka", "requests"])
def test_what_came_of_it_is_there_after_a_kill(name: str) -> None:
    file = BytesFile()
    service = new_service(file)
    # Without their ends the sessions go on, and so do their ephemerals.
    for rows in (recording(name), recording(name)[:-30]):
        replay([row for row in rows if row[2] != "end"], service)
        for _ in range(2):  # from the writes, of which it makes a snapshot, and from that
            found = new_service(file).tree
            assert found.nodes == service.tree.nodes
            assert found.sessions == service.tree.sessions
            assert found.zxid == service.tree.zxid
        service = new_service(file)


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_requests_ends_connections_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    file = BytesFile()
    service = new_service(file)
    rows = []
    for number, (_, sender, frame) in enumerate(recording("requests")):
        if sender == "client" and frame != "end":
            connect_request = "00" * 12 + "00007530" + "00" * 8 + "ffffffff"
            data = bytearray.fromhex(frame)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            rows += [
                (number, sender, connect_request),
                (number, sender, data.hex()),
                (number, sender, "end"),
            ]
    replay(rows, service)
    found = new_service(file).tree
    assert (found.nodes, found.zxid) == (service.tree.nodes, service.tree.zxid)
