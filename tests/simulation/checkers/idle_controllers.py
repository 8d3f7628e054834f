"""Check that an idle controller's state equals ZooKeeper's, and that it elected where it could.

Only controllers write partition states. A controller would never send a leader a state that it
takes for unwritten, and it must have replaced a leader that it takes for offline.
"""

from __future__ import annotations

from functools import cache

import orjson

from kafkapy.controller.context import ControllerContext
from kafkapy.zk.stores import paths
from tests.simulation.checkers.base import Checker
from tests.simulation.node import Node

_state_path = cache(paths.partition_state)


class IdleControllers(Checker):
    """Inspects the latest controller whenever no event is queued or being handled."""

    def on_step(self, node: Node) -> None:
        controller, broker = node.acting_controller, node.built_broker
        if controller is None or broker is None or broker.controller._wake.is_set():
            return
        context = controller.context
        nodes = self.world.ensemble.tree.nodes
        if context.epoch != int(nodes[paths.CONTROLLER_EPOCH].data):
            return
        latest = nodes.get(paths.CONTROLLER)
        if latest is None or orjson.loads(latest.data)["brokerid"] != node.broker_id:
            return
        for partition, known in context.leadership.items():
            state = nodes.get(_state_path(*partition))
            if state is not None and state.stat.version != known.partition_epoch:
                self.violated(
                    f"{partition}: controller {node.broker_id} knows version"
                    f" {known.partition_epoch} of its state, ZooKeeper has {state.stat.version}"
                )
        self._check_elections(node, context)

    def _check_elections(self, node: Node, context: ControllerContext) -> None:
        for partition in context.partitions_with_offline_leader():
            isr = context.leadership[partition].isr
            able = [b for b in isr if context.is_replica_online(b, partition)]
            if able:
                self.violated(
                    f"{partition} is led by nobody who is online; controller {node.broker_id} knows"
                    f" {able} of ISR {isr} to be"
                )
