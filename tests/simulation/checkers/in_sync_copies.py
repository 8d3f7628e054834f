"""Check that acknowledged records have enough copies, and in-sync replicas all committed records.

The first part is checked when a producer with acks=all receives a response: at least
`min.insync.replicas` logs, and those of all members of the ISR, have its records. But a leader that
an unclean election has replaced may acknowledge records that it alone has. The second part is
checked when a leader's ISR, its proposal or the high watermark changes: every member, a proposed
one too, has all records that any leader committed (KIP-497).
"""

from __future__ import annotations

from typing import Final

import orjson

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.events import SECOND_US
from tests.simulation.history import Answer
from tests.simulation.node import BASE_CONFIG, Node

_LATE_US: Final = 5 * SECOND_US
"""A copy that existed this long ago counts: the response may have been in flight."""


class InSyncCopies(Checker):
    """Records how far each replica's log reached, also for brokers that are down."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._keys: dict[TopicPartition, PartitionKey] = {}
        self._ends: dict[tuple[int, PartitionKey], int] = {}
        # The end before the log was last cut, and the time of that cut.
        self._ends_before_cut: dict[tuple[int, PartitionKey], tuple[int, int]] = {}
        self._problems: list[tuple[TopicPartition, int, Answer, str]] = []
        self._min_isr = int((BASE_CONFIG | cluster.plan.config)["min.insync.replicas"])
        cluster.history.on_acknowledged = self._acknowledged

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        self._keys[key.topic_partition] = key
        where, end = (node.broker_id, key), partition.log.log_end_offset
        known = self._ends.get(where, 0)
        if end < known:
            before, _ = self._ends_before_cut.get(where, (0, 0))
            self._ends_before_cut[where] = max(known, before), self.world.events.now_us
        self._ends[where] = end
        if partition.is_leader:
            self._check_members(node, key, partition)

    def on_stopped_serving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Note the last append of a follower that ends in the middle of a step. It may have
        requested the records after it, so a leader may count it."""
        where = node.broker_id, key
        self._ends[where] = max(self._ends.get(where, 0), partition.log.log_end_offset)

    def _check_members(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        state = self._state(key.topic_partition)
        if state.get("leader") != node.broker_id:
            return
        if state.get("leader_epoch") != partition.leader_epoch:
            return
        committed = self.cluster.committed_ends.get(key, 0)
        for member in sorted(partition.in_sync.maximal):
            if not self._has(member, key, committed) and not self._is_excused(
                member, key, partition, committed
            ):
                self.violated(
                    f"{key.topic_partition}: leader {node.broker_id} of epoch"
                    f" {partition.leader_epoch} counts {member} as in sync, whose log ends at"
                    f" {self._ends.get((member, key), 0)}: committed are records up to {committed}"
                )

    def _is_excused(
        self, member: int, key: PartitionKey, partition: Partition, committed: int
    ) -> bool:
        """Whether a loss replaced the member's missing records, which this leader always had."""
        end = self._ends.get((member, key), 0)
        for loss in self.cluster.history.losses.get(key.topic_partition, ()):
            _, end_before = partition.log.end_offset_for_epoch(loss.epoch - 1)
            if loss.kept <= end and committed <= min(loss.end, end_before):
                return True
        return False

    def _state(self, topic_partition: TopicPartition) -> dict[str, object]:
        found = self.world.ensemble.tree.nodes.get(paths.partition_state(*topic_partition))
        return {} if found is None else orjson.loads(found.data)

    def _has(self, broker_id: int, key: PartitionKey, end: int) -> bool:
        """Whether a replica's log reaches `end`, or did before a power cut or a moment ago."""
        if self._ends.get((broker_id, key), 0) >= end:
            return True
        before, cut_us = self._ends_before_cut.get((broker_id, key), (0, 0))
        was_torn = self.world.nodes[broker_id].last_power_cut_us >= 0
        return before >= end and (was_torn or self.world.events.now_us - cut_us < _LATE_US)

    def _acknowledged(self, at: TopicPartition, first: int, last: int) -> None:
        key = self._keys[at]
        copies = [b for b in self.world.nodes if self._has(b, key, last + 1)]
        isr = self._state(at).get("isr", [])
        assert isinstance(isr, list)
        message = f"{at}: offsets {first} to {last} are acknowledged, and are on brokers {copies}"
        if len(copies) < self._min_isr:
            self._note(at, first, f"{message}: min.insync.replicas is {self._min_isr}")
        elif not set(isr) <= set(copies) and not self._is_replaced_uncleanly(at):
            self._note(at, first, f"{message}: in sync are {isr}")

    def _is_replaced_uncleanly(self, at: TopicPartition) -> bool:
        """Whether the elected leader was not in sync, and has not led yet."""
        is_elected = paths.partition_state(*at) in self.cluster.unclean_leaders
        return is_elected and self.cluster.allows_unclean_elections

    def _note(self, at: TopicPartition, offset: int, problem: str) -> None:
        answer = Answer(-1, self.world.events.now_us)
        self._problems.append((at, offset, answer, problem))

    def on_end(self) -> None:
        history = self.cluster.history
        for at, offset, answer, problem in self._problems:
            losses = history.losses.get(at, ())
            # A leader that lost records may respond before the loss is recorded.
            if not any(loss.kept <= offset and loss.replaced(answer) for loss in losses):
                self.violated(problem)
