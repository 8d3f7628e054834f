"""The ISR is always a subset of the assigned replicas, and the leader is one of it.

In ZooKeeper, that is: a leader is told of a reassignment's last step (its new replicas) before the
ISR is shrunk to it, so what it holds may differ for a moment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker


class IsrSubsets(Checker):
    """Holds each state znode against its topic's znode."""

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if not isinstance(op, Create | SetData):
                continue
            parts = op.path.split("/")
            if op.path.startswith(f"{paths.TOPICS}/") and parts[-1] == "state":
                self._check(parts[3], parts[5])
            elif op.path.startswith(f"{paths.TOPICS}/") and len(parts) == 4:
                for index in json.loads(op.data)["partitions"]:
                    self._check(parts[3], index)

    def _check(self, topic: str, index: str) -> None:
        nodes = self.world.ensemble.tree.nodes
        state_node = nodes.get(paths.partition_state(topic, int(index)))
        topic_node = nodes.get(paths.topic(topic))
        if state_node is None or topic_node is None:
            return
        state = json.loads(state_node.data)
        assigned = json.loads(topic_node.data)["partitions"][index]
        if not set(state["isr"]) <= set(assigned):
            self.violated(f"{topic}-{index}: ISR {state['isr']} of replicas {assigned}")
        if state["leader"] >= 0 and state["leader"] not in state["isr"]:
            self.violated(f"{topic}-{index}: leader {state['leader']} of ISR {state['isr']}")
