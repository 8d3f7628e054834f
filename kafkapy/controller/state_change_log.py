"""The controller's lines in `state-change.log`, in Kafka's words (logger `state.change.logger`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from typing import Final

from kafkapy.common.cluster_state import (
    RECOVERED,
    LeaderAndIsr,
    LeaderAndIsrPartition,
)
from kafkapy.common.topic_partition import TopicPartition

TRACE: Final = 5

_logger = logging.getLogger("state.change.logger")


class StateChangeLog:
    """Writes with the prefix that names the controller and its epoch."""

    __slots__ = ("_controller_id", "_epoch", "_prefix")

    def __init__(self, controller_id: int, epoch: int) -> None:
        self._controller_id = controller_id
        self._epoch = epoch
        self._prefix = f"[Controller id={controller_id} epoch={epoch}]"

    def partition_new(
        self, partition: TopicPartition, state: Enum, replicas: Sequence[int]
    ) -> None:
        """Log that a partition became NewPartition."""
        _logger.info(
            "%s Changed partition %s state from %s to NewPartition with assigned replicas %s",
            self._prefix,
            partition,
            state.value,
            ",".join(map(str, replicas)),
        )

    def partition_online(
        self, partition: TopicPartition, state: Enum, elected: LeaderAndIsr
    ) -> None:
        """Log that a partition got a leader."""
        if _logger.isEnabledFor(logging.INFO):
            _logger.info(
                "%s Changed partition %s from %s to OnlinePartition with state %s",
                self._prefix,
                partition,
                state.value,
                _leader_and_isr_text(elected),
            )

    def partition_changed(self, partition: TopicPartition, state: Enum, target: Enum) -> None:
        """Log another change of a partition's state."""
        _logger.log(
            TRACE,
            "%s Changed partition %s state from %s to %s",
            self._prefix,
            partition,
            state.value,
            target.value,
        )

    def partition_failed(
        self, partition: TopicPartition, state: Enum, target: Enum, reason: str
    ) -> None:
        """Log that a partition could not change its state."""
        _logger.error(
            "%s Controller %d epoch %d failed to change state for partition %s from %s to %s: %s",
            self._prefix,
            self._controller_id,
            self._epoch,
            partition,
            state.value,
            target.value,
            reason,
        )

    def replica_changed(
        self, replica: int, partition: TopicPartition, state: Enum, target: Enum
    ) -> None:
        """Log that a replica changed its state."""
        _logger.log(
            TRACE,
            "%s Changed state of replica %d for partition %s from %s to %s",
            self._prefix,
            replica,
            partition,
            state.value,
            target.value,
        )

    def replica_failed(
        self, replica: int, partition: TopicPartition, state: Enum, target: Enum, reason: str
    ) -> None:
        """Log that a replica could not change its state."""
        _logger.error(
            "%s Controller %d epoch %d initiated state change of replica %d for partition %s"
            " from %s to %s failed: %s",
            self._prefix,
            self._controller_id,
            self._epoch,
            replica,
            partition,
            state.value,
            target.value,
            reason,
        )

    def removed_from_isr(
        self, replica: int, partition: TopicPartition, state: LeaderAndIsr
    ) -> None:
        """Log that a replica left the ISR because it went offline."""
        if _logger.isEnabledFor(logging.INFO):
            _logger.info(
                "%s Partition %s state changed to %s after removing replica %d from the ISR as part"
                " of transition to OfflineReplica",
                self._prefix,
                partition,
                _with_controller_epoch_text(state),
                replica,
            )

    def reassigning(
        self, partition: TopicPartition, state: LeaderAndIsr, assignment: object
    ) -> None:
        """Log that all replicas of a partition were sent its reassignment."""
        if _logger.isEnabledFor(logging.INFO):
            _logger.info(
                "%s Sent LeaderAndIsr request %s with new replica assignment %s to leader %d for"
                " partition being reassigned %s",
                self._prefix,
                _with_controller_epoch_text(state),
                assignment,
                state.leader,
                partition,
            )

    def sending_leader_and_isr(
        self, broker_id: int, partitions: Sequence[LeaderAndIsrPartition]
    ) -> None:
        """Log that a LeaderAndIsr is sent to a broker."""
        leaders = sum(row.state.leader == broker_id for row in partitions)
        _logger.info(
            "%s Sending LeaderAndIsr request to broker %d with %d become-leader and %d"
            " become-follower partitions",
            self._prefix,
            broker_id,
            leaders,
            len(partitions) - leaders,
        )

    def sending_update_metadata(self, broker_ids: Sequence[int], partitions: int) -> None:
        """Log that an UpdateMetadata is sent to brokers."""
        _logger.info(
            "%s Sending UpdateMetadata request to brokers HashSet(%s) for %d partitions",
            self._prefix,
            ", ".join(map(str, broker_ids)),
            partitions,
        )

    def sending_stop_replica(self, broker_id: int, replicas: int) -> None:
        """Log that a StopReplica is sent to a broker."""
        _logger.info(
            "%s Sending StopReplica request for %d replicas to broker %d",
            self._prefix,
            replicas,
            broker_id,
        )

    def marked_offline(self, broker_id: int, partitions: Sequence[TopicPartition]) -> None:
        """Log that a broker reported a failed log directory of these replicas."""
        _logger.info(
            "%s Mark replicas %s on broker %d as offline",
            self._prefix,
            ",".join(map(str, partitions)),
            broker_id,
        )


def _leader_and_isr_text(state: LeaderAndIsr) -> str:
    isr = ", ".join(f"BrokerState(brokerId={b}, brokerEpoch=-1)" for b in state.isr)
    return (
        f"LeaderAndIsr(leader={state.leader}, leaderEpoch={state.leader_epoch},"
        f" isrWithBrokerEpoch=List({isr}), leaderRecoveryState={_recovery_text(state)},"
        f" partitionEpoch={state.partition_epoch})"
    )


def _with_controller_epoch_text(state: LeaderAndIsr) -> str:
    """`LeaderIsrAndControllerEpoch.toString`."""
    return (
        f"(Leader:{state.leader},ISR:{','.join(map(str, state.isr))},"
        f"LeaderRecoveryState:{_recovery_text(state)},LeaderEpoch:{state.leader_epoch},"
        f"ZkVersion:{state.partition_epoch},ControllerEpoch:{state.controller_epoch})"
    )


def _recovery_text(state: LeaderAndIsr) -> str:
    return "RECOVERED" if state.leader_recovery_state == RECOVERED else "RECOVERING"
