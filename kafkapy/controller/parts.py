"""Collaborators of the controller's procedures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.context import ControllerContext
from kafkapy.controller.events import Event
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.request_batch import RequestBatch
from kafkapy.controller.topic_deletion import TopicDeletion
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import WatchEvent

Submit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class EventWatch:
    """A watch that queues an event. Equal watches count as one."""

    submit: Submit
    event: Event

    def __call__(self, _: WatchEvent) -> None:
        self.submit(self.event)


class ControllerParts:
    """Context, ports and state machines of one controller. `submit` queues an event."""

    def __init__(
        self, config: ControllerConfig, store: ZkStore, sender: BrokerSender, submit: Submit
    ) -> None:
        self.config = config
        self.store = store
        self.sender = sender
        self.submit = submit
        self.context = ControllerContext()
        self.partitions = PartitionStateMachine(config, self.context, store, sender)
        self.replicas = ReplicaStateMachine(config, self.context, store, sender)
        self.deletion = TopicDeletion(
            config, self.context, store, sender, self.partitions, self.replicas
        )

    def watch(self, event: Event) -> EventWatch:
        """A watch that queues `event`."""
        return EventWatch(self.submit, event)

    def send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Send brokers the live brokers, and the state of these partitions."""
        batch = RequestBatch(self.config.broker_id, self.context, self.sender)
        batch.add_update_metadata(broker_ids, partitions)
        batch.send()
