"""Random lives of a cluster, from a seed: brokers die, in the middle of what they do too, and
return, topics come, grow, move and go, leaders change ISRs, in any interleaving. After each, and
when it has come to rest, the rules hold."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import NO_LEADER, LeaderAndIsr, TopicDescription
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    AlterPartitionReassignments,
    AutoRebalance,
    ControlledShutdown,
    ReassignmentResult,
)
from kafkapy.zk.stores.znodes import encode_reassignments
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run

BROKERS = (1, 2, 3, 4)
REASSIGN_PARTITIONS = "/admin/reassign_partitions"


class Life:
    """One seed's cluster with what must never go back."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = Cluster(*BROKERS)
        self.live = set(BROKERS)
        self.made = 0
        self.seen: dict[TopicPartition, tuple[int, LeaderAndIsr]] = {}
        # Where each partition was last told to go, of those for which it is certain.
        self.targets: dict[TopicPartition, tuple[int, ...]] = {}

    def act(self) -> None:
        """One random action, then a few random steps of the controllers."""
        self.chance.choice(
            [
                self.kill,
                self.restart,
                self.restart,
                self.create,
                self.create,
                self.grow,
                self.delete,
                self.alter,
                self.alter,
                self.stop_politely,
                self.rebalance,
                self.reassign,
                self.reassign,
                self.reassign_by_znode,
                self.kill_at_a_step,
            ]
        )()
        for _ in range(self.chance.randrange(12)):
            self.step()

    def step(self) -> None:
        busy = [b for b in self.cluster.brokers.values() if b.events]
        if busy:
            broker = self.chance.choice(busy)
            self.cluster.step(broker)
            if not self.cluster.server.is_live(broker.zookeeper.session_id):
                self.live.discard(broker.broker_id)
        self.check()

    def kill(self) -> None:
        if len(self.live) > 1:
            broker_id = self.chance.choice(sorted(self.live))
            self.live.discard(broker_id)
            self.cluster.brokers[broker_id].die()

    def kill_at_a_step(self) -> None:
        """A broker will die after one of the next things it does as the controller."""
        if len(self.live) > 1:
            broker = self.cluster.brokers[self.chance.choice(sorted(self.live))]
            broker.dies_after = broker.steps + self.chance.randrange(1, 30)

    def restart(self) -> None:
        dead = sorted(set(BROKERS) - self.live)
        if dead:
            broker_id = self.chance.choice(dead)
            self.live.add(broker_id)
            self.cluster.brokers[broker_id].restart()

    def create(self) -> None:
        self.made += 1
        factor = self.chance.randrange(1, 4)
        assignment = {
            index: tuple(self.chance.sample(BROKERS, factor))
            for index in range(self.chance.randrange(1, 4))
        }
        topic = TopicDescription(f"t{self.made}", topic_id(self.made), assignment)
        run(self.cluster.store.topics.create(topic))

    def grow(self) -> None:
        names = run(self.cluster.store.topics.names())
        topic = run(self.cluster.store.topics.get(self.chance.choice(names))) if names else None
        if topic is None or topic.adding_replicas or topic.removing_replicas:
            return
        if not run(self.cluster.store.requests.is_queued_for_deletion(topic.topic)):
            more = {**topic.assignment, len(topic.assignment): topic.assignment[0][::-1]}
            run(
                self.cluster.store.topics.update(
                    TopicDescription(topic.topic, topic.topic_id, more)
                )
            )

    def delete(self) -> None:
        names = run(self.cluster.store.topics.names())
        if names:
            name = self.chance.choice(names)
            if not run(self.cluster.store.requests.is_queued_for_deletion(name)):
                run(self.cluster.store.requests.request_topic_deletion(name))

    def some_partitions(self) -> list[TopicPartition]:
        names = run(self.cluster.store.topics.names())
        topic = run(self.cluster.store.topics.get(self.chance.choice(names))) if names else None
        if topic is None:
            return []
        return [
            TopicPartition(topic.topic, i) for i in topic.assignment if self.chance.random() < 0.6
        ]

    def some_target(self) -> tuple[int, ...]:
        return tuple(self.chance.sample(BROKERS, self.chance.randrange(1, 4)))

    def reassign(self) -> None:
        """An admin wants partitions elsewhere, or where they came from."""
        active = [b for b in self.cluster.brokers.values() if b.controller.is_active]
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            partition: None if self.chance.random() < 0.3 else self.some_target()
            for partition in self.some_partitions()
        }
        if not active or not targets:
            return
        for partition in targets:
            self.targets.pop(partition, None)

        def answered(results: Mapping[TopicPartition, ReassignmentResult] | ErrorCode) -> None:
            if isinstance(results, ErrorCode):
                return
            for partition, result in results.items():
                target = targets[partition]
                self.targets.pop(partition, None)
                if result.error is ErrorCode.NONE and target is not None:
                    self.targets[partition] = target

        active[0].events.append(AlterPartitionReassignments(targets, answered))

    def reassign_by_znode(self) -> None:
        """A tool of old writes its wish, if there is none already."""
        targets = {partition: self.some_target() for partition in self.some_partitions()}
        if targets and REASSIGN_PARTITIONS not in self.cluster.server.tree.nodes:
            for partition in targets:
                self.targets.pop(partition, None)
            data = encode_reassignments(targets)
            run(self.cluster.store.zookeeper.create(REASSIGN_PARTITIONS, data))

    def alter(self) -> None:
        """Some leader wishes for some ISR, as far as it knows its partition."""
        active = [b for b in self.cluster.brokers.values() if b.controller.is_active]
        known = [
            (partition, state)
            for broker in active
            for partition, state in sorted(broker.controller.context.leadership.items())
            if state.leader in self.live and broker.controller.context.has_partition(partition)
        ]
        if not known:
            return
        partition, state = self.chance.choice(known)
        replicas = active[0].controller.context.assignment(partition).replicas
        others = [r for r in replicas if r != state.leader and self.chance.random() < 0.7]
        wish = AlterPartitionItem(
            *(partition.topic, topic_id(0), partition.partition, state.leader_epoch),
            *((state.leader, *others), 0, state.partition_epoch),
        )
        epoch = self.cluster.brokers[state.leader].broker_epoch
        active[0].events.append(AlterPartition(state.leader, epoch, [wish], lambda _: None))

    def stop_politely(self) -> None:
        if not self.live:
            return
        broker_id = self.chance.choice(sorted(self.live))
        for broker in self.cluster.brokers.values():
            if broker.controller.is_active:
                broker.events.append(ControlledShutdown(broker_id, -1, lambda _: None))

    def rebalance(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.events.append(AutoRebalance())

    def states(self) -> dict[TopicPartition, tuple[int, LeaderAndIsr]]:
        """Every partition's state in ZooKeeper, with the czxid of its node."""
        nodes = self.cluster.server.tree.nodes
        found = {}
        for path in sorted(nodes):
            parts = path.split("/")
            if parts[-1] == "state":
                partition = TopicPartition(parts[3], int(parts[5]))
                state = run(self.cluster.store.topics.states([partition]))[partition]
                found[partition] = (nodes[path].stat.czxid, state)
        return found

    def check(self) -> None:
        """Invariants that hold at every moment."""
        active = [b for b in self.cluster.brokers.values() if b.controller.is_active]
        fences = [b.controller.context.epoch for b in active]
        assert len(fences) == len(set(fences)), "one controller per controller epoch"
        states = self.states()
        for partition, (node, state) in states.items():
            topic = run(self.cluster.store.topics.get(partition.topic))
            assert topic is not None
            assigned = topic.assignment[partition.partition]
            assert state.isr, f"{partition}: the ISR is never empty"
            assert set(state.isr) <= set(assigned), f"{partition}: ISR within the assignment"
            assert state.leader == NO_LEADER or state.leader in state.isr, partition
            if partition in self.seen and self.seen[partition][0] == node:
                before = self.seen[partition][1]
                assert state.leader_epoch >= before.leader_epoch, partition
                assert state.partition_epoch >= before.partition_epoch, partition
                assert state.controller_epoch >= before.controller_epoch, partition
                if state.leader_epoch == before.leader_epoch:
                    assert state.leader == before.leader, f"{partition}: one leader per epoch"
        self.seen = states

    def rest(self) -> None:
        """Everybody returns, everything is handled: then all must be well."""
        for broker in self.cluster.brokers.values():
            broker.dies_after = None
        while self.live != set(BROKERS):
            self.restart()
        self.cluster.settle()
        for broker_id in sorted(self.cluster.controller.context.shutting_down):
            self.cluster.kill(broker_id)
            self.cluster.restart(broker_id)
        self.cluster.catch_up()
        self.check()
        self.check_reassignments()
        assert run(self.cluster.store.requests.topic_deletions()) == [], "deletions end"
        context = self.cluster.controller.context
        states = {partition: state for partition, (_, state) in self.states().items()}
        assert context.leadership == states
        for partition, state in states.items():
            assert state.leader in self.live, f"{partition} has a leader: its whole ISR is back"
        for broker in self.cluster.brokers.values():
            image = broker.metadata.image
            told = {
                TopicPartition(topic.name, row.partition): (row.leader, row.leader_epoch, row.isr)
                for topic in image.topics.values()
                for row in topic.partitions.values()
            }
            assert told == {p: (s.leader, s.leader_epoch, s.isr) for p, s in states.items()}
            assert sorted(image.brokers) == list(BROKERS)

    def check_reassignments(self) -> None:
        """Every one has ended, in exactly the target that was asked for last."""
        assert REASSIGN_PARTITIONS not in self.cluster.server.tree.nodes
        for name in run(self.cluster.store.topics.names()):
            topic = run(self.cluster.store.topics.get(name))
            assert topic is not None
            assert not topic.adding_replicas, topic
            assert not topic.removing_replicas, topic
            for index, replicas in topic.assignment.items():
                partition = TopicPartition(name, index)
                assert replicas == self.targets.get(partition, replicas), partition
                for broker_id in replicas:
                    assert partition in self.cluster.brokers[broker_id].replicas, partition


@pytest.mark.parametrize("seed", range(60))
def test_a_life(seed: int) -> None:
    life = Life(seed)
    for _ in range(40):
        life.act()
    life.rest()


TRACE = """
import hashlib, logging
from tests.unit.controller.test_controller_seeds import Life
logging.disable(logging.CRITICAL)
life = Life(5)
for _ in range(40):
    life.act()
life.rest()
print(hashlib.sha256(chr(10).join(life.cluster.sent).encode()).hexdigest())
"""


def test_nothing_depends_on_hash_order() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(traces) == 1
