"""Check that brokers never take a log directory on a sound disk offline."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class SoundDisks(Checker):
    """Inspects each directory that goes offline. A broker without another directory ends by itself,
    which is a fault (`Uncaught`) unless its disk fails or it is stopping. A broker that runs out of
    descriptors while it stops leaves a directory as kill -9 does: the next start recovers it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._offline: dict[tuple[int, int], int] = {}

    def on_step(self, node: Node) -> None:
        if node.built_broker is None:
            return
        offline = node.built_broker.replicas.log_manager.offline_log_dirs
        run_number = (node.broker_id, node.run_number)
        is_excused = node.is_disk_failing or node.is_stopping
        if len(offline) > self._offline.get(run_number, 0) and not is_excused:
            self.violated(f"broker {node.broker_id} gave up {offline}, and its disk is sound")
        self._offline[run_number] = len(offline)
