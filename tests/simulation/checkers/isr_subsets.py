"""Check that the ISR is a subset of the assigned replicas, with the leader and no offline joiners.

A replica joins the ISR only while the controller considers it online. The check applies to
ZooKeeper: a leader receives the new replicas of a reassignment's last step before the ISR is
reduced to them, so its own ISR may differ for a moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster


class IsrSubsets(Checker):
    """Compares each state znode with its topic's znode, and with the controller's view."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._isr: dict[str, list[int]] = {}

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if not isinstance(op, Create | SetData):
                continue
            parts = op.path.split("/")
            if op.path.startswith(f"{paths.TOPICS}/") and parts[-1] == "state":
                self._check(parts[3], parts[5])
                before = [] if isinstance(op, Create) else self._isr.get(op.path, [])
                self._isr[op.path] = isr = orjson.loads(op.data)["isr"]
                at = TopicPartition(parts[3], int(parts[5]))
                self._check_new(at, [member for member in isr if member not in before])
            elif op.path.startswith(f"{paths.TOPICS}/") and len(parts) == 4:
                for index in orjson.loads(op.data)["partitions"]:
                    self._check(parts[3], index)

    def _check(self, topic: str, index: str) -> None:
        nodes = self.world.ensemble.tree.nodes
        state_node = nodes.get(paths.partition_state(topic, int(index)))
        topic_node = nodes.get(paths.topic(topic))
        if state_node is None or topic_node is None:
            return
        state = orjson.loads(state_node.data)
        assigned = orjson.loads(topic_node.data)["partitions"][index]
        if not set(state["isr"]) <= set(assigned):
            self.violated(f"{topic}-{index}: ISR {state['isr']} of replicas {assigned}")
        if state["leader"] >= 0 and state["leader"] not in state["isr"]:
            self.violated(f"{topic}-{index}: leader {state['leader']} of ISR {state['isr']}")

    def _check_new(self, at: TopicPartition, members: list[int]) -> None:
        contexts = [
            node.acting_controller.context
            for node in self.world.nodes.values()
            if node.acting_controller is not None
        ]
        epoch = int(self.world.ensemble.tree.nodes[paths.CONTROLLER_EPOCH].data)
        # None if the writing controller has died since.
        context = next((each for each in contexts if each.epoch == epoch), None)
        if context is None:
            return
        for member in members:
            if not context.is_replica_online(member, at):
                self.violated(f"{at}: {member} joins the ISR, which the controller knows is down")
