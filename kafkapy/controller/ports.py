"""The BrokerSender port, by which the controller sends commands to brokers, also to its own."""

from __future__ import annotations

from typing import Protocol

from kafkapy.common.cluster_state import (
    BrokerInfo,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    UpdateMetadataCommand,
)


class BrokerSender(Protocol):
    """One queue for each broker. Commands are sent in order, and again until answered or the broker
    is removed.

    The methods do not wait. Responses are events (`LeaderAndIsrResponse`, `StopReplicaResponse`).
    """

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        """Start to send to a broker."""
        ...

    def remove_broker(self, broker_id: int) -> None:
        """Remove a broker and its queue."""
        ...

    def send_leader_and_isr(self, broker_id: int, command: LeaderAndIsrCommand) -> None:
        """Queue a LeaderAndIsr."""
        ...

    def send_update_metadata(self, broker_id: int, command: UpdateMetadataCommand) -> None:
        """Queue an UpdateMetadata."""
        ...

    def send_stop_replica(self, broker_id: int, command: StopReplicaCommand) -> None:
        """Queue a StopReplica."""
        ...
