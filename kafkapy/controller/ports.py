"""The BrokerSender port: how the controller speaks to brokers, itself among them."""

from __future__ import annotations

from typing import Protocol

from kafkapy.common.cluster_state import (
    BrokerInfo,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    UpdateMetadataCommand,
)


class BrokerSender(Protocol):
    """A queue per broker: in order, each command resent until answered or the broker is removed.

    Nothing waits here: answers come back as events (`LeaderAndIsrResponse`, `StopReplicaResponse`).
    """

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        """Begin to send to a broker."""
        ...

    def remove_broker(self, broker_id: int) -> None:
        """Forget a broker and what is queued for it."""
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
