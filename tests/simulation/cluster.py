"""A simulated cluster under observation: brokers, the topic under test, and checkers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import orjson

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.groups.record_codec import group_key
from kafkapy.record.records import iter_records
from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker, PartitionKey, Violation
from tests.simulation.history import GROUPS, SimHistory
from tests.simulation.node import Node
from tests.simulation.plan import Plan
from tests.simulation.world import World

TOPIC = "orders"
TRIMMED = "trimmed"
"""The topic whose records are deleted on request."""
TABLE = "table"
"""The topic that is compacted."""
RETAINED = "retained"
"""The topic whose old segments are deleted."""
RETENTION_BYTES = 1500
_READ_BYTES = 1 << 20
OTHER_TOPIC_PREFIX = "other-"
"""The prefix of the topics that no client writes to."""
_DRIFT_PERMILLE = 20


class Cluster:
    """The brokers of a plan. `targets` are the assignments that reassignments may end in.
    `offsets_found` are the committed offsets that groups found at the end. `remaining_problems` are
    the problems that remained. `committed_ends` are the committed ends of partitions.
    `required_ends` are the ends up to which replaced leaders committed records that their
    successors in sync had: later leaders must have them.
    `unclean_leaders` are the leaders, by path of the state, that were elected although they were
    not in sync, and have not led since. `on_truncation` is called with a broker that has just cut a
    log."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        self.history = SimHistory(world)
        self.targets: dict[TopicPartition, list[tuple[int, ...]]] = {}
        self.offsets_found: dict[str, int] = {}
        self.remaining_problems: list[str] = []
        self.power_cut_of_all_us = -1
        """The time of the power cut of all machines, -1 for never."""
        self.checkers: list[Checker] = []
        self._step_checkers: list[Checker] = []
        self._partition_checkers: list[Checker] = []
        """Checkers with an `on_step`, and checkers with an `on_partition`."""
        self.committed_ends: dict[PartitionKey, int] = {}
        self.required_ends: dict[PartitionKey, int] = {}
        self.unclean_leaders: dict[str, int] = {}
        self.on_truncation: Callable[[Node, Partition], None] = lambda node, partition: None
        self._hosted: dict[int, list[Partition]] = {}
        """The partitions that each broker hosted when it was last inspected."""
        self._violation_in_step: Violation | None = None
        self._epochs_led: dict[tuple[int, TopicPartition], int] = {}
        self._inspected_states: dict[int, dict[TopicPartition, tuple[object, ...]]] = defaultdict(
            dict
        )
        self._truncations: dict[tuple[int, TopicPartition], tuple[object, int]] = {}
        # Of the group coordinator's partition, by leader epoch: where it began, what it replicated.
        self._group_starts: dict[int, int] = {}
        self._group_high_watermarks: dict[int, int] = defaultdict(int)
        self.history.epoch_led = lambda broker_id, at: self._epochs_led.get((broker_id, at), -1)
        self.history.was_load_replicated = self._was_load_replicated
        self.history.was_group_removed = self._was_group_removed
        for broker_id in range(1, plan.brokers + 1):
            node = world.nodes[broker_id] = Node(world, broker_id, plan.config)
            node.on_process_end = self._process_ends
            node.disk.on_directory_rename = partial(self._before_directory_rename, node)
            if plan.drifts:
                node.drift_permille = world.random.randrange(-_DRIFT_PERMILLE, _DRIFT_PERMILLE + 1)
        world.events.on_instant = self._inspect
        world.ensemble.on_change = self._znodes_changed

    @property
    def allows_unclean_elections(self) -> bool:
        """Whether they are configured, or were requested once."""
        return self.plan.unclean or self.world.counts["unclean election"] > 0

    @property
    def may_have_gaps(self) -> bool:
        """Whether the end of a closed segment may be missing for good, after a power cut. A broker
        whose recovery checkpoint is lost, too, accepts that: compaction leaves such gaps (decision
        0041)."""
        counts = self.world.counts
        return counts["lost after cleaning"] + counts["lost checkpoint"] > 0

    # watching

    def watch(self, checkers: Sequence[Callable[[Cluster], Checker]]) -> None:
        """Create the checkers, which observe the cluster from now on."""
        self.checkers = [make(self) for make in checkers]
        self._step_checkers = [
            checker for checker in self.checkers if type(checker).on_step is not Checker.on_step
        ]
        self._partition_checkers = [
            checker
            for checker in self.checkers
            if type(checker).on_partition is not Checker.on_partition
        ]

    def _znodes_changed(self, ops: Sequence[Op], session_id: int) -> None:
        for op in ops:
            if op.path.endswith("/state") and isinstance(op, Create | SetData):
                state = orjson.loads(op.data)
                self.world.trace.note(
                    "znode",
                    f"{op.path.split('/')[3]}-{op.path.split('/')[5]} leader {state['leader']}"
                    f" epoch {state['leader_epoch']} isr {state['isr']}",
                )
        for checker in self.checkers:
            checker.on_change(ops)

    def _inspect(self, hosts: dict[str, None]) -> None:
        """Pass the changes on these hosts, where something ran, to the checkers."""
        if self._violation_in_step is not None:
            raise self._violation_in_step
        for node in self.world.nodes.values():
            if node.host not in hosts or node.built_broker is None:
                continue
            with node.without_faults():
                for partition in self._hosted.get(node.broker_id, ()):
                    if not partition.is_served:
                        self._stops_serving(node, partition)
                self._hosted[node.broker_id] = hosted = node.partitions()
                for partition in hosted:
                    self._inspect_partition(node, partition)
                for checker in self._step_checkers:
                    checker.on_step(node)

    def _process_ends(self, node: Node) -> None:
        """Check an ending process."""
        hosted = dict.fromkeys([*self._hosted.pop(node.broker_id, ()), *node.partitions()])
        self._check_in_step(node, list(hosted))

    def _before_directory_rename(self, node: Node, directory: str) -> None:
        """Check a log before its deletion renames it: its segments open their files by path."""
        hosted = self._hosted.get(node.broker_id, [])
        deleted = [p for p in hosted if not p.is_served and p.log.directory == directory]
        if deleted:
            self._hosted[node.broker_id] = [p for p in hosted if p not in deleted]
            self._check_in_step(node, deleted)

    def _check_in_step(self, node: Node, stopped: Sequence[Partition]) -> None:
        """Check partitions that stop serving in the middle of a step. The broker may drop
        exceptions, so a violation is raised after the step."""
        try:
            with node.without_faults():
                for partition in stopped:
                    self._stops_serving(node, partition)
        except Violation as violation:
            self._violation_in_step = self._violation_in_step or violation

    def _stops_serving(self, node: Node, partition: Partition) -> None:
        self._note_coordinator(partition)
        key = PartitionKey(str(partition.topic_id), partition.topic_partition)
        for checker in self.checkers:
            checker.on_stopped_serving(node, key, partition)
        if not partition.is_served:
            partition.log.local.close_handles()  # which reading has opened again

    def _inspect_partition(self, node: Node, partition: Partition) -> None:
        log, in_sync = partition.log, partition.in_sync
        local = log.local
        truncations = local.truncation_count
        seen = (
            partition.is_leader, partition.leader_epoch, in_sync.committed, in_sync.maximal,
            log.high_watermark, local.log_end_offset, log.log_start_offset, truncations,
            partition,
        )  # fmt: skip
        at, of_node = partition.topic_partition, self._inspected_states[node.broker_id]
        if of_node.get(at) != seen:
            of_node[at] = seen
            where = (node.broker_id, at)
            if partition.is_leader:
                self._epochs_led[where] = partition.leader_epoch
            self._note_coordinator(partition)
            known = self._truncations.get(where, (log, 0))
            if known[0] is log and truncations > known[1]:
                self.on_truncation(node, partition)
            self._truncations[where] = (log, truncations)
            key = PartitionKey(str(partition.topic_id), at)
            for checker in self._partition_checkers:
                checker.on_partition(node, key, partition)

    def _note_coordinator(self, partition: Partition) -> None:
        if partition.topic_partition == GROUPS:
            epoch, reached = partition.leader_epoch, self._group_high_watermarks
            reached[epoch] = max(reached[epoch], partition.log.high_watermark)
            if partition.is_leader:
                self._group_starts[epoch] = partition.leader_epoch_start_offset

    def _was_load_replicated(self, epoch: int) -> bool:
        """Whether the coordinator of a leader epoch had the records with which it began, which it
        loads up to the log end, replicated while it led."""
        return self._group_high_watermarks[epoch] >= self._group_starts.get(epoch, 0)

    # state in the znodes

    def znode(self, path: str) -> dict[str, object] | None:
        node = self.world.ensemble.tree.nodes.get(path)
        return None if node is None else orjson.loads(node.data)

    def topics(self) -> list[str]:
        tree = self.world.ensemble.tree
        return tree.child_names(paths.TOPICS) if paths.TOPICS in tree.nodes else []

    def assignment(self, topic_partition: TopicPartition) -> tuple[int, ...] | None:
        """The assigned replicas, None if the partition does not exist."""
        topic = self.znode(paths.topic(topic_partition.topic))
        if topic is None:
            return None
        partitions = topic["partitions"]
        assert isinstance(partitions, dict)
        found = partitions.get(str(topic_partition.partition))
        return None if found is None else tuple(found)

    def leader_epoch(self, topic_partition: TopicPartition) -> int:
        """The leader epoch of a partition's last election, -1 if it has had none."""
        state = self.znode(paths.partition_state(*topic_partition))
        epoch = -1 if state is None else state["leader_epoch"]
        assert isinstance(epoch, int)
        return epoch

    def partitions(self) -> list[TopicPartition]:
        found = []
        for name in self.topics():
            topic = self.znode(paths.topic(name))
            assert topic is not None
            assert isinstance(topic["partitions"], dict)
            found += [TopicPartition(name, int(index)) for index in topic["partitions"]]
        return found

    def _was_group_removed(self, group: str) -> bool:
        """Whether a broker's log of groups has a tombstone of a group."""
        key = group_key(group)
        for node in self.world.nodes.values():
            with node.without_faults():
                for partition in node.partitions():
                    log = partition.log
                    if partition.topic_partition == GROUPS:
                        start, end = log.log_start_offset, log.log_end_offset
                        records = iter_records(log.read(start, _READ_BYTES, end, True).records)
                        if any(r.key == key and r.value is None for r in records):
                            return True
        return False

    # convergence

    def unsettled(self) -> list[str]:
        """The reasons why the cluster has not settled yet, as texts; empty if it has."""
        found = [f"broker {n.broker_id} is not up" for n in self.world.nodes.values()
                 if not n.is_serving]  # fmt: skip
        tree = self.world.ensemble.tree
        if paths.DELETE_TOPICS in tree.nodes:
            found += [f"{name} is not deleted" for name in tree.child_names(paths.DELETE_TOPICS)]
        # The first request for a coordinator creates that topic; perhaps no client got that far.
        wanted = (TOPIC, GROUP_METADATA_TOPIC) if self.history.groups else (TOPIC,)
        found += [f"there is no topic {name}" for name in wanted if name not in self.topics()]
        for topic_partition in self.partitions():
            found += self._unsettled_partition(topic_partition)
        for node in self.world.nodes.values():
            found += self._unfinished(node)
        return found

    @property
    def segment_bytes(self) -> int:
        """The config that was last set for the topic under test, 0 for none."""
        stored = self.znode(paths.config("topics", TOPIC)) or {}
        config = stored.get("config") or {}
        assert isinstance(config, dict)
        return int(config.get("segment.bytes", 0))

    def _unsettled_partition(self, topic_partition: TopicPartition) -> list[str]:
        topic = self.znode(paths.topic(topic_partition.topic))
        state = self.znode(paths.partition_state(*topic_partition))
        assert topic is not None
        if state is None:
            return [f"{topic_partition} has no leader yet"]
        index = str(topic_partition.partition)
        for key in ("adding_replicas", "removing_replicas"):
            moving = topic.get(key) or {}
            assert isinstance(moving, dict)
            if moving.get(index):
                return [f"{topic_partition} is being reassigned: {key} {moving[index]}"]
        replicas, isr = self.assignment(topic_partition) or (), state["isr"]
        leader = state["leader"]
        assert isinstance(isr, list)
        assert isinstance(leader, int)
        if set(isr) != set(replicas):
            return [f"{topic_partition} has ISR {isr} of {replicas}, leader {leader}"]
        return self._unequal_logs(topic_partition, replicas, leader)

    def _unequal_logs(
        self, topic_partition: TopicPartition, replicas: Sequence[int], leader: int
    ) -> list[str]:
        topic, index = topic_partition
        ends, starts = {}, {}
        for broker_id in replicas:
            broker = self.world.nodes[broker_id].built_broker
            hosted = None if broker is None else broker.replicas.partitions.get(topic, {})
            partition = None if hosted is None else hosted.get(index)
            if partition is None:
                return [f"{topic_partition} is not hosted by {broker_id}"]
            if partition.is_leader != (broker_id == leader):
                return [f"{broker_id} does not know that {leader} leads {topic_partition}"]
            ends[broker_id] = (partition.log.log_end_offset, partition.log.high_watermark)
            starts[broker_id] = partition.log.log_start_offset
        if len({end for end, _ in ends.values()}) != 1 or any(e != h for e, h in ends.values()):
            return [f"{topic_partition} has (log end, high watermark) {ends}"]
        if min(starts.values()) < starts.get(leader, 0):  # the new leader may have gone back
            return [f"{topic_partition} begins at {starts}; {leader} leads"]
        return []

    def _unfinished(self, node: Node) -> list[str]:
        """The work that a broker has not finished yet."""
        broker = node.built_broker
        if broker is None:
            return []
        found = [
            f"{at} still moves to another directory of broker {node.broker_id}"
            for at in broker.replicas.log_manager.future_logs.logs
        ]
        topics = self.topics()
        found += [
            f"broker {node.broker_id} still has {at}, which was deleted"
            for at in broker.replicas.log_manager.logs
            if at.topic not in topics
        ]
        wanted = self.segment_bytes
        for partition in node.partitions():
            log, at = partition.log, partition.topic_partition
            if at.topic == TOPIC and wanted not in (0, log.config.segment_bytes):
                found.append(f"broker {node.broker_id} does not apply segment.bytes to {at}")
            first = log.segments.first
            is_large = log.size_bytes - first.size >= RETENTION_BYTES and len(log.segments) > 1
            if at.topic == RETAINED and is_large:
                found.append(f"{at} of broker {node.broker_id} has {log.size_bytes} bytes")
        return found
