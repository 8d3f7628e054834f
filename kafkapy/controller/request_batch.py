"""Control requests of one state change, collected by broker, then sent in Kafka's order.

LeaderAndIsr, UpdateMetadata, StopReplica (`kafka.controller.ControllerBrokerRequestBatch`). Every
partition of a LeaderAndIsr also goes to all brokers as UpdateMetadata. The UpdateMetadata rows are
shared by all recipients; only the broker epoch differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafkapy.common.cluster_state import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    BrokerInfo,
    LeaderAndIsr,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ControllerContext
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.state_change_log import StateChangeLog


class RequestBatch:
    """One batch. It cannot be used after `send`."""

    def __init__(
        self, controller_id: int, context: ControllerContext, sender: BrokerSender
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._sender = sender
        self._log = StateChangeLog(controller_id, context.epoch)
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartition]] = {}
        self._update_brokers: set[int] = set()
        self._update_partitions: dict[TopicPartition, UpdateMetadataPartition] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartition]] = {}

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        state: LeaderAndIsr,
        is_new: bool = False,
    ) -> None:
        """Add a partition's leader and ISR for these brokers. A later row replaces an earlier one,
        but "new" stays.
        """
        assignment = self._context.assignment(partition)
        for broker_id in broker_ids:
            rows = self._leader_and_isr.setdefault(broker_id, {})
            was_new = partition in rows and rows[partition].is_new
            rows[partition] = LeaderAndIsrPartition(
                partition.topic,
                self._context.topic_id(partition.topic),
                partition.partition,
                state,
                assignment.replicas,
                assignment.adding,
                assignment.removing,
                is_new or was_new,
            )
        self.add_update_metadata(self._context.broker_ids, [partition])

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Add the live brokers, and the state of these partitions, for these brokers."""
        self._update_brokers.update(broker_ids)
        for partition in partitions:
            state = self._context.leadership.get(partition)
            if state is None:
                continue
            if self._context.is_queued_for_deletion(partition.topic):
                state = replace(
                    state, leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0
                )
            replicas = self._context.assignment(partition).replicas
            self._update_partitions[partition] = UpdateMetadataPartition(
                partition.topic,
                self._context.topic_id(partition.topic),
                partition.partition,
                state,
                replicas,
                tuple(r for r in replicas if not self._context.is_replica_online(r, partition)),
            )

    def add_stop_replica(
        self, broker_id: int, partition: TopicPartition, delete: bool = False
    ) -> None:
        """Add a command for a broker to stop, and perhaps delete, its replica."""
        epoch = NO_EPOCH
        if self._context.is_queued_for_deletion(partition.topic):
            epoch = EPOCH_DURING_DELETE
        elif (state := self._context.leadership.get(partition)) is not None:
            epoch = state.leader_epoch
        rows = self._stop_replica.setdefault(broker_id, {})
        was_delete = partition in rows and rows[partition].delete
        rows[partition] = StopReplicaPartition(
            partition.topic, partition.partition, epoch, delete or was_delete
        )

    def send(self) -> None:
        """Queue all requests to live brokers."""
        live = self._context.broker_ids
        for broker_id in live:
            if broker_id in self._leader_and_isr:
                self._send_leader_and_isr(broker_id, self._leader_and_isr[broker_id])
        recipients = [broker_id for broker_id in live if broker_id in self._update_brokers]
        if recipients:
            self._send_update_metadata(recipients)
        for broker_id in live:
            if broker_id in self._stop_replica:
                self._send_stop_replica(broker_id, self._stop_replica[broker_id])

    def _send_leader_and_isr(
        self, broker_id: int, rows: dict[TopicPartition, LeaderAndIsrPartition]
    ) -> None:
        partitions = [rows[partition] for partition in sorted(rows)]
        leaders = {row.state.leader for row in partitions}
        self._log.sending_leader_and_isr(broker_id, partitions)
        self._sender.send_leader_and_isr(
            broker_id,
            LeaderAndIsrCommand(
                self._controller_id,
                self._context.epoch,
                self._context.broker_epochs[broker_id],
                partitions,
                [broker for broker in self._live_brokers() if broker.broker_id in leaders],
            ),
        )

    def _send_update_metadata(self, recipients: list[int]) -> None:
        partitions = [self._update_partitions[p] for p in sorted(self._update_partitions)]
        self._log.sending_update_metadata(recipients, len(partitions))
        live_brokers = self._live_brokers()
        for broker_id in recipients:
            self._sender.send_update_metadata(
                broker_id,
                UpdateMetadataCommand(
                    self._controller_id,
                    self._context.epoch,
                    self._context.broker_epochs[broker_id],
                    partitions,
                    live_brokers,
                ),
            )

    def _send_stop_replica(
        self, broker_id: int, rows: dict[TopicPartition, StopReplicaPartition]
    ) -> None:
        self._log.sending_stop_replica(broker_id, len(rows))
        self._sender.send_stop_replica(
            broker_id,
            StopReplicaCommand(
                self._controller_id,
                self._context.epoch,
                self._context.broker_epochs[broker_id],
                [rows[partition] for partition in sorted(rows)],
            ),
        )

    def _live_brokers(self) -> list[BrokerInfo]:
        return [self._context.live_brokers[broker_id] for broker_id in self._context.broker_ids]
