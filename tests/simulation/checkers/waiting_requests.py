"""Check that no request waits although it could be answered."""

from __future__ import annotations

from kafkapy.replication.delayed_fetch import DelayedFetch
from kafkapy.replication.delayed_produce import DelayedProduce
from kafkapy.replication.follower_wait import FollowerWait
from kafkapy.replication.purgatory import DelayedOperation
from tests.simulation.checkers.base import Checker
from tests.simulation.node import Node


class WaitingRequests(Checker):
    """Reports a Fetch or Produce that still waits after a step that made it ready: it would get a
    response only at its timeout. A replication quota delays ready fetches, so fetches are not
    checked while one is set.
    """

    def on_step(self, node: Node) -> None:
        if node.built_broker is None:
            return
        replicas = node.built_broker.replicas
        waiting = replicas.produce_purgatory.waiting()
        if replicas.quotas.leader.limit is None:
            waiting += replicas.fetch_purgatory.waiting()
        for operation in waiting:
            if _is_ready(operation):
                self.violated(
                    f"a {type(operation).__name__} still waits at {node.host} for {operation.keys}"
                )


def _is_ready(operation: DelayedOperation) -> bool:
    """Whether it could be answered. `DelayedProduce.ready` would change its state."""
    if isinstance(operation, DelayedProduce):
        return not any(
            wait.waiting
            and wait.partition.is_leader
            and wait.partition.log.high_watermark < wait.required_offset
            for wait in operation.waits
        )
    return isinstance(operation, DelayedFetch | FollowerWait) and operation.ready()
