"""Hand-written regression tests of sequences of events that once failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import pytest

from kafkapy.common.cluster_state import (
    EPOCH_DURING_DELETE,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    StopReplicaPartition,
)
from kafkapy.common.errors import ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.replication.partition import Partition
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.storage.flush_task import FlushTask
from kafkapy.storage.log_append import LogAppendInfo
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.zk.stores import paths
from tests.harness.storage.partitions import partition_state
from tests.simulation.checkers.base import Violation
from tests.simulation.clients import Client
from tests.simulation.cluster import TOPIC
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.history import GROUPS
from tests.simulation.kill_points import disarm, kill_at
from tests.simulation.node import Node
from tests.simulation.plan import TWO_DIRECTORIES, Plan
from tests.simulation.process import THREAD_US, Killed
from tests.simulation.share_members import ShareMember
from tests.simulation.simulation import Simulation, destructors_held_back, faults_logged

AT = TopicPartition(TOPIC, 0)


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    """Three brokers with a topic, idle."""
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
    """The session that owns a broker's znode."""
    found = simulation.world.ensemble.tree.nodes.get(paths.broker(broker_id))
    return None if found is None else found.stat.ephemeral_owner


@pytest.mark.parametrize("delay_us", [1000, 3000, 6000])
def test_a_session_that_expires_while_the_broker_rejoins_is_replaced_once(
    simulation: Simulation, delay_us: int
) -> None:
    """Two concurrent attempts would close each other's sessions, and the controller's too."""
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


def test_a_broker_that_stops_does_not_follow_again_for_its_own_controller(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appended to logs that were closed as flushed."""
    [node] = [n for n in simulation.world.nodes.values() if n.acting_controller is not None]
    broker, others = node.built_broker, [i for i in (1, 2, 3) if i != node.broker_id]
    assert broker is not None
    partition = broker.replicas.get(*AT)
    resign = broker.controller.stop
    results = []

    async def elect_and_resign(*limit: float) -> bool:
        row = partition_state(
            others[0], tuple(others), (1, 2, 3), partition.leader_epoch + 1,
            topic=TOPIC, topic_id=partition.topic_id,
        )  # fmt: skip
        epochs = broker.replicas.controller_epoch, broker._member.broker_epoch
        command = LeaderAndIsrCommand(node.broker_id, *epochs, [row])
        results.append(await broker._control_requests.apply(command))
        return await resign(*limit)

    monkeypatch.setattr(broker.controller, "stop", elect_and_resign)
    node.stop()
    while not results:
        run_for(simulation, MS_US)
    assert [each.error for each in results] == [ErrorCode.STALE_BROKER_EPOCH]
    assert not broker._member._fetchers._fetchers
    run_for(simulation, 2 * SECOND_US)
    assert not simulation.world.faults


def thread_times(simulation: Simulation) -> set[int]:
    nodes = simulation.world.nodes.values()
    return {node.process.thread_us for node in nodes if node.process is not None}


def test_threads_that_several_faults_slow_are_quick_again(simulation: Simulation) -> None:
    """The second fault must not take the first one's thread time for the default."""
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


def test_a_flush_hangs_alone(simulation: Simulation) -> None:
    """As the broker runs a flush: otherwise the hung flush fault would test fast disks."""
    process = simulation.world.nodes[1].process
    assert process is not None
    process.flush_us = 1000 * SECOND_US
    partition = simulation.world.nodes[1].partitions()[0]
    flush = FlushTask(partition.log, partition.log.flush_handle())
    done: list[str] = []

    async def work(name: str, step: Callable[[], object]) -> None:
        await asyncio.to_thread(step)
        done.append(name)

    process.create_task(work("a flush", flush.fsync))
    process.create_task(work("the rest", dict))
    run_for(simulation, SECOND_US)
    assert done == ["the rest"]
    simulation.faults.stop()
    assert process.flush_us == 0


@pytest.mark.parametrize("point", ["PREPARE_COMMIT was written", "LeaderAndIsr was received"])
def test_a_broker_ends_right_after_a_step(point: str) -> None:
    """The other brokers go on from the bytes that it has written or sent."""
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


@pytest.fixture
def in_two_directories() -> Iterator[Simulation]:
    """Three brokers with two log directories and a topic, idle."""
    config = {"log.dirs": TWO_DIRECTORIES}
    with destructors_held_back():
        simulation = Simulation(1, Plan(partitions=1, config=config, weights={"kill": 1}))
        with faults_logged(simulation.world):
            simulation.start()
            yield simulation
        simulation.end()


def leader_of_topic(simulation: Simulation) -> tuple[Node, Partition]:
    [found] = [
        (node, partition)
        for node in simulation.world.nodes.values()
        for partition in node.partitions()
        if partition.topic_partition == AT and partition.is_leader
    ]
    return found


def committed_end(simulation: Simulation) -> int:
    ends = simulation.cluster.committed_ends.items()
    return max(end for key, end in ends if key.topic_partition == AT)


def fail_disk(node: Node, log_dirs: list[str]) -> None:
    assert node.built_broker is not None
    disk = node.faulty_disk
    disk.fail_at, disk.for_good = disk.changes, True
    for log_dir in log_dirs:
        node.built_broker.replicas.log_dir_failed(LogDirFailure(log_dir, "no space left"))


def test_a_broker_may_end_for_a_disk_that_failed_just_before_the_faults_ended(
    simulation: Simulation,
) -> None:
    """The thread that met the failure reports it later."""
    node = simulation.world.nodes[1]
    broker, disk = node.built_broker, node.faulty_disk
    assert broker is not None
    assert node.process is not None

    async def work() -> None:
        await asyncio.to_thread(disk.fails, disk.prefix)
        for log_dir in node.log_dirs:
            broker.replicas.log_dir_failed(LogDirFailure(log_dir, "no space left"))

    disk.prefix, disk.fail_at, disk.for_good = "/data/of-the-thread", disk.changes + 1, True
    node.process.create_task(work())
    events = simulation.world.events
    events.run_until(events.now_us + SECOND_US, lambda: node.is_disk_failing)
    assert not broker.failed.is_set(), "the thread has not ended yet"
    simulation.faults.stop()
    assert not disk.fails(disk.prefix)
    run_for(simulation, SECOND_US)
    assert simulation.world.counts["broker ended by itself"] == 1


def kill(node: Node) -> NoReturn:
    node.kill()
    raise Killed


def run_until_it_commits(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, end_it: Callable[[], None]
) -> None:
    """Call `end_it` in a step in which the topic's leader commits records, after it has answered
    the other follower. What it committed must count."""
    node, partition = leader_of_topic(simulation)
    assert node.built_broker is not None
    replicas, known = node.built_broker.replicas, []
    checked = replicas.check_delayed_requests

    def check_and_end(of: Partition) -> None:
        checked(of)
        if of is partition and not known and of.log.high_watermark > committed_end(simulation):
            known.append(committed_end(simulation))
            end_it()

    monkeypatch.setattr(replicas, "check_delayed_requests", check_and_end)
    while not known:
        run_for(simulation, MS_US // 4)
    assert committed_end(simulation) == partition.log.high_watermark > known[0]


@pytest.mark.parametrize("end", ["a directory fails", "all directories fail", "kill -9"])
def test_what_a_leader_commits_in_its_last_step_counts(
    in_two_directories: Simulation, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Followers receive its high watermark, and nothing else can read it any more."""
    simulation = in_two_directories
    node, partition = leader_of_topic(simulation)

    def end_it() -> None:
        if end == "kill -9":
            kill(node)
        fail_disk(node, node.log_dirs if end.startswith("all") else [partition.log.log_dir])

    run_until_it_commits(simulation, monkeypatch, end_it)
    run_for(simulation, 4 * SECOND_US)
    assert leader_of_topic(simulation)[0] is not node
    assert committed_end(simulation) > partition.log.high_watermark


def test_what_a_leader_commits_just_before_its_replica_is_deleted_counts(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 24261769: a reassignment moved the replica away."""
    node, partition = leader_of_topic(simulation)
    broker, process = node.built_broker, node.process
    assert broker is not None
    assert process is not None
    rows = [StopReplicaPartition(TOPIC, 0, EPOCH_DURING_DELETE, delete=True)]
    command = StopReplicaCommand(1, broker.replicas.controller_epoch, 1, rows)

    def delete() -> None:
        process.create_task(broker.replicas.stop_replicas(command))

    run_until_it_commits(simulation, monkeypatch, delete)
    assert partition not in node.partitions()
    assert node.built_broker is broker
    assert not broker.replicas.log_manager.offline_log_dirs


def test_what_a_leader_wrongly_commits_in_its_last_step_is_held_against_the_next(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, partition = leader_of_topic(simulation)
    append = UnifiedLog.append_as_leader

    def append_and_end(log: UnifiedLog, *args: Any) -> LogAppendInfo:
        info = append(log, *args)
        if log is partition.log and node.is_up:
            log.update_high_watermark(log.log_end_offset)
            kill(node)
        return info

    monkeypatch.setattr(UnifiedLog, "append_as_leader", append_and_end)
    with pytest.raises(Violation, match="has committed records up to offset"):
        run_for(simulation, 4 * SECOND_US)


def test_what_a_coordinator_loads_is_replicated_when_the_followers_have_it(
    simulation: Simulation,
) -> None:
    """It begins at its log end, which a paused follower in sync does not have yet."""
    events, was_replicated = simulation.world.events, simulation.cluster.history.was_load_replicated
    nodes = simulation.world.nodes.values()

    def leader() -> tuple[Node, Partition] | None:
        found = [(n, p) for n in nodes for p in n.partitions() if p.topic_partition == GROUPS]
        return next(((n, p) for n, p in found if p.is_leader), None)

    def until(condition: Callable[[], bool]) -> None:
        events.run_until(events.now_us + 5 * SECOND_US, condition)
        assert condition()

    until(lambda: (led := leader()) is not None and led[1].log.high_watermark > 0)
    led = leader()
    assert led is not None
    first, partition = led
    assert was_replicated(partition.leader_epoch)
    follower = next(n for n in nodes if n is not first and n.acting_controller is None)
    follower.pause()
    until(lambda: partition.log.log_end_offset > partition.log.high_watermark)
    first.stop()
    until(lambda: (led := leader()) is not None and led[0] is not first)
    led = leader()
    assert led is not None
    second, partition = led
    assert second is not follower
    assert not was_replicated(partition.leader_epoch)
    follower.resume()
    until(lambda: was_replicated(partition.leader_epoch))
    until(lambda: not first.is_up)


def test_a_connection_that_ends_in_the_backlog_is_not_counted_for_good(
    simulation: Simulation,
) -> None:
    """Seed 24168566: clients gave up while a broker was paused. It accepted the closed connections,
    and then no more: they took all places."""
    node = simulation.world.nodes[1]
    client = Client(simulation.world, "c")
    broker = node.built_broker
    assert broker is not None
    run_for(simulation, SECOND_US)
    connections = broker._connections
    accepted = connections.accepted
    node.pause()

    async def ask() -> None:
        with pytest.raises(NodeUnavailable):
            await client.node(1).request(MetadataRequest(topics=[]), 8)
        client.is_done = True

    client.spawn(ask())
    run_for(simulation, 2 * SECOND_US)
    assert client.is_done
    node.resume()
    run_for(simulation, SECOND_US)
    assert connections.accepted > accepted
    assert "c" not in connections.limits._per_host


def test_one_member_at_a_time_begins_a_share_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request to begin the group, still in flight, would begin it again after members have
    joined and accepted records."""
    begin, in_progress, concurrency = ShareMember._begin, [], []

    async def counted(member: ShareMember) -> None:
        in_progress.append(member)
        concurrency.append(len(in_progress))
        try:
            await begin(member)
        finally:
            in_progress.remove(member)

    monkeypatch.setattr(ShareMember, "_begin", counted)
    with destructors_held_back():
        simulation = Simulation(1, Plan(partitions=1, share_members=3, weights={"kill": 1}))
        with faults_logged(simulation.world):
            simulation.start()
            run_for(simulation, 3 * SECOND_US)
        simulation.end()
    assert set(concurrency) == {1}
    assert all(
        member._progress.is_begun and member.member_id for member in simulation.share_members
    )
