"""Courses of events that once went wrong, each put together by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from kafkapy.zk.stores import paths
from tests.simulation.cluster import TOPIC
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.kill_points import disarm, kill_at
from tests.simulation.node import Node
from tests.simulation.plan import Plan
from tests.simulation.process import THREAD_US
from tests.simulation.simulation import Simulation, destructors_held_back, faults_logged


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    """Three brokers with a topic, at rest."""
    with destructors_held_back():
        simulation = Simulation(1, Plan(partitions=1, weights={"kill": 1}))
        with faults_logged(simulation.world):
            simulation.start()
            yield simulation
        simulation.end()


def run_for(simulation: Simulation, microseconds: int) -> None:
    events = simulation.world.events
    events.run_until(events.now_us + microseconds)


def registration(simulation: Simulation, broker_id: int) -> int | None:
    """The session that holds a broker's znode."""
    found = simulation.world.ensemble.tree.nodes.get(paths.broker(broker_id))
    return None if found is None else found.stat.ephemeral_owner


@pytest.mark.parametrize("delay_us", [1000, 3000, 6000])
def test_a_session_that_expires_while_the_broker_rejoins_is_replaced_once(
    simulation: Simulation, delay_us: int
) -> None:
    """Two attempts at once would close each other's sessions, the controller's with them."""
    ensemble = simulation.world.ensemble
    first = registration(simulation, 1)
    assert first is not None
    ensemble.expire(first)
    newest = max(ensemble.sessions)
    while max(ensemble.sessions) == newest:
        run_for(simulation, MS_US // 4)
    run_for(simulation, delay_us)
    ensemble.expire(max(ensemble.sessions))
    seen = []
    for _ in range(80):
        run_for(simulation, SECOND_US // 20)
        seen.append(registration(simulation, 1))
    owners = list(dict.fromkeys(owner for owner in seen if owner is not None))
    assert len(owners) == 1, "it registered once, and stayed"
    assert seen[-1] == owners[0]
    assert not simulation.world.faults
    state = simulation.cluster.znode(paths.partition_state(TOPIC, 0))
    assert state is not None
    assert sorted(state["isr"]) == [1, 2, 3]  # type: ignore[call-overload]


def thread_times(simulation: Simulation) -> set[int]:
    nodes = simulation.world.nodes.values()
    return {node.process.thread_us for node in nodes if node.process is not None}


def test_threads_that_several_faults_slow_are_quick_again(simulation: Simulation) -> None:
    """The second one must not take the first one's time for the usual one."""
    for _ in range(12):
        assert simulation.faults.slow_disk()
        run_for(simulation, SECOND_US // 5)
    assert thread_times(simulation) != {THREAD_US}
    run_for(simulation, 5 * SECOND_US)
    assert thread_times(simulation) == {THREAD_US}


def test_threads_are_quick_when_all_faults_are_over(simulation: Simulation) -> None:
    assert simulation.faults.slow_disk()
    run_for(simulation, SECOND_US // 5)
    assert thread_times(simulation) != {THREAD_US}
    simulation.faults.stop()
    assert thread_times(simulation) == {THREAD_US}


@pytest.mark.parametrize("point", ["PREPARE_COMMIT was written", "LeaderAndIsr was received"])
def test_a_broker_ends_right_after_a_step(point: str) -> None:
    """The others go on from the bytes that it has written or sent."""
    with destructors_held_back():
        simulate_end_at(point)


def simulate_end_at(point: str) -> None:
    simulation = Simulation(3, Plan(partitions=1, transactional_ids=1, weights={"kill": 1}))
    with faults_logged(simulation.world):
        simulation.start()
        ended: list[str] = []
        nodes = list(simulation.world.nodes.values())
        for node in nodes:
            kill_at(node, point, 1, partial(end, node, ended))
        run_for(simulation, 4 * SECOND_US)
        assert ended
        for node in nodes:
            disarm(node)
            node.start()
        simulation._settle()
        simulation._drain()
        for checker in simulation.cluster.checkers:
            checker.on_end()
    simulation.end()


def end(node: Node, ended: list[str]) -> None:
    ended.append(node.host)
    node.kill()
