"""One acting controller per controller epoch, and none but the latest writes partition states."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kafkapy.zk import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class ControllerEpochs(Checker):
    """Remembers who acted in each epoch."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._controllers: dict[int, int] = {}

    def on_step(self, node: Node) -> None:
        services = node.services
        controller = None if services is None else services.controller.controller
        if controller is None or not controller.is_active:
            return
        epoch = controller.context.fence.controller_epoch
        acting = self._controllers.setdefault(epoch, node.broker_id)
        if acting != node.broker_id:
            self.violated(f"{acting} and {node.broker_id} both act in controller epoch {epoch}")

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Create | SetData) and op.path.endswith("/state"):
                written = json.loads(op.data)["controller_epoch"]
                current = int(self.world.ensemble.tree.nodes[paths.CONTROLLER_EPOCH].data)
                if written != current:
                    self.violated(
                        f"{op.path} was written in controller epoch {written}: it is {current}"
                    )
