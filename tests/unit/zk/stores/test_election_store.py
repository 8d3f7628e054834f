"""One winner at a time, and epochs that only grow."""

from __future__ import annotations

import pytest

from kafkapy.zk.stores.fencing import ControllerMoved, Fence
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import WatchEvent
from tests.harness.cores.znodes import run, server


def test_the_first_winner_has_epoch_one() -> None:
    ensemble = server()
    store = ZkStore(ensemble.connect())
    assert run(store.election.controller_id()) is None
    assert run(store.election.elect(3, 0)) == Fence(1, 1)
    assert run(store.election.controller_id()) == 3
    assert ensemble.tree.nodes["/controller_epoch"].data == b"1"


def test_only_one_wins() -> None:
    ensemble = server()
    one, two = ZkStore(ensemble.connect()), ZkStore(ensemble.connect())
    run(one.election.elect(1, 0))
    with pytest.raises(ControllerMoved):
        run(two.election.elect(2, 0))
    assert ensemble.tree.nodes["/controller_epoch"].data == b"1"


def test_a_seat_won_in_a_write_whose_answer_was_lost_is_recognised() -> None:
    zk = server().connect()
    store = ZkStore(zk)
    fence = run(store.election.elect(1, 0))
    assert run(store.election._fence_if_elected(1, 1)) == fence
    with pytest.raises(ControllerMoved):
        run(store.election._fence_if_elected(1, 2))


def test_abdication_is_fenced() -> None:
    ensemble = server()
    one, two = ZkStore(ensemble.connect()), ZkStore(ensemble.connect())
    first = run(one.election.elect(1, 0))
    run(one.election.delete_controller(first))
    run(one.election.delete_controller(first))
    second = run(two.election.elect(2, 0))
    assert second == Fence(2, 2)
    with pytest.raises(ControllerMoved):
        run(one.election.delete_controller(first))
    assert run(one.election.controller_id()) == 2


def test_the_watch_waits_for_a_controller_to_come_or_go() -> None:
    store = ZkStore(server().connect())
    seen: list[WatchEvent] = []
    run(store.election.controller_id(seen.append))
    fence = run(store.election.elect(1, 0))
    assert len(seen) == 1
    run(store.election.controller_id(seen.append))
    run(store.election.delete_controller(fence))
    assert len(seen) == 2
