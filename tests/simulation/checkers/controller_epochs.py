"""Check of controller epochs: one acting controller each, state writes by the latest one only.

No broker obeys a controller of an older epoch after one of a newer epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class ControllerEpochs(Checker):
    """Records the controller that acted in each epoch."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._controllers: dict[int, int] = {}
        self._latest_epochs: dict[tuple[int, int], int] = {}

    def on_step(self, node: Node) -> None:
        broker = node.built_broker
        if broker is None:
            return
        self._check_controller_epoch(node, broker.replicas.controller_epoch)
        controller = node.acting_controller
        if controller is None:
            return
        epoch = controller.context.fence.controller_epoch
        acting = self._controllers.setdefault(epoch, node.broker_id)
        if acting != node.broker_id:
            self.violated(f"{acting} and {node.broker_id} both act in controller epoch {epoch}")

    def _check_controller_epoch(self, node: Node, epoch: int) -> None:
        latest = self._latest_epochs.get((node.broker_id, node.run_number), 0)
        if epoch < latest:
            self.violated(
                f"broker {node.broker_id} obeyed the controller of epoch {epoch} after that of"
                f" epoch {latest}"
            )
        self._latest_epochs[node.broker_id, node.run_number] = epoch

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Create | SetData) and op.path.endswith("/state"):
                written = orjson.loads(op.data)["controller_epoch"]
                current = int(self.world.ensemble.tree.nodes[paths.CONTROLLER_EPOCH].data)
                if written != current:
                    self.violated(
                        f"{op.path} was written in controller epoch {written}: it is {current}"
                    )
