"""A broker's lines in `state-change.log`, in Kafka's words (logger `state.change.logger`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkapy.common.cluster_state import (
    NO_EPOCH,
    NO_LEADER,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    UpdateMetadataCommand,
)
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition

_logger = logging.getLogger("state.change.logger")


class CommandLog:
    """Logs the outcome of one control request.

    Fixed: the broker, the command, the correlation id of its request.
    """

    __slots__ = ("_command", "_correlation_id", "_epoch", "_prefix", "_request_name")

    def __init__(
        self,
        broker_id: int,
        command: LeaderAndIsrCommand | StopReplicaCommand | UpdateMetadataCommand,
        correlation_id: int,
    ) -> None:
        self._command = command
        self._correlation_id = correlation_id
        self._epoch = command.controller_epoch
        self._prefix = f"[Broker id={broker_id}]"
        self._request_name = type(command).__name__.removesuffix("Command")

    def handling(self) -> None:
        """Log that LeaderAndIsr or StopReplica is being handled."""
        _logger.info(
            "%s Handling %s request correlationId %d from controller %d for %d partitions",
            self._prefix,
            self._request_name,
            self._correlation_id,
            self._command.controller_id,
            len(self._command.partitions),
        )

    def finished(self, elapsed_ms: int) -> None:
        """Log that LeaderAndIsr is finished."""
        _logger.info(
            "%s Finished %s request in %dms correlationId %d from controller %d for %d partitions",
            self._prefix,
            self._request_name,
            elapsed_ms,
            self._correlation_id,
            self._command.controller_id,
            len(self._command.partitions),
        )

    def stale_controller(self, latest_epoch: int) -> None:
        """Log that the command is ignored because a newer controller has sent one."""
        if isinstance(self._command, UpdateMetadataCommand):
            text = (
                "%s Received update metadata request with correlation id %d from an old controller"
                " %d with epoch %d. Latest known controller epoch is %d"
            )
            fields = (self._prefix, self._correlation_id, self._command.controller_id)
            _logger.warning(text, *fields, self._epoch, latest_epoch)
            return
        _logger.warning(
            "%s Ignoring %s request from controller %d with correlation id %d since its controller"
            " epoch %d is old. Latest known controller epoch is %d",
            self._prefix,
            self._request_name,
            self._command.controller_id,
            self._correlation_id,
            self._epoch,
            latest_epoch,
        )

    def ignored(self, partition: TopicPartition, reason: str, level: int = logging.WARNING) -> None:
        """Log that one row is ignored. The reason begins with "since" or "as"."""
        _logger.log(
            level,
            "%s Ignoring %s request from controller %d with correlation id %d epoch %d for"
            " partition %s %s",
            self._prefix,
            self._request_name,
            self._command.controller_id,
            self._correlation_id,
            self._epoch,
            partition,
            reason,
        )

    def leader_starts(
        self, partition: Partition, row: LeaderAndIsrPartition, before: tuple[int, int]
    ) -> None:
        """Log that this broker leads. `before` is the previous leader and leader epoch."""
        _logger.info(
            "%s Leader %s with topic id Some(%s) starts at leader epoch %d from offset %d with"
            " partition epoch %d, high watermark %d, ISR %s, adding replicas %s and removing"
            " replicas %s %s. Previous leader %s and previous leader epoch was %d.",
            self._prefix,
            partition.topic_partition,
            row.topic_id,
            row.state.leader_epoch,
            partition.leader_epoch_start_offset,
            row.state.partition_epoch,
            partition.log.high_watermark,
            _listed(row.state.isr),
            _listed(row.adding_replicas),
            _listed(row.removing_replicas),
            "(under-min-isr)" if partition.is_under_min_isr else "",
            *_option_and_epoch(before),
        )

    def follower_starts(
        self, partition: Partition, row: LeaderAndIsrPartition, before: tuple[int, int]
    ) -> None:
        """Log that this broker follows, or waits for a leader."""
        if row.state.leader == NO_LEADER:
            _logger.error(
                "%s Received LeaderAndIsrRequest with correlation id %d from controller %d epoch %d"
                " for partition %s (last update controller epoch %d) but cannot become follower"
                " since the new leader %d is unavailable.",
                self._prefix,
                self._correlation_id,
                self._command.controller_id,
                self._epoch,
                partition.topic_partition,
                row.state.controller_epoch,
                row.state.leader,
            )
            return
        _logger.info(
            "%s Follower %s starts at leader epoch %d from offset %d with partition epoch %d and"
            " high watermark %d. Current leader is %d. Previous leader %s and previous leader epoch"
            " was %d.",
            self._prefix,
            partition.topic_partition,
            row.state.leader_epoch,
            partition.log.log_end_offset,
            row.state.partition_epoch,
            partition.log.high_watermark,
            row.state.leader,
            *_option_and_epoch(before),
        )

    def stopped_fetchers(self, leaders: int, followers: int) -> None:
        """Log that fetchers were stopped because their partitions have another leader."""
        if leaders:
            _logger.info(
                "%s Stopped fetchers as part of LeaderAndIsr request correlationId %d from"
                " controller %d epoch %d as part of the become-leader transition for %d partitions",
                self._prefix,
                self._correlation_id,
                self._command.controller_id,
                self._epoch,
                leaders,
            )
        if followers:
            _logger.info(
                "%s Stopped fetchers as part of become-follower request from controller %d epoch %d"
                " with correlation id %d for %d partitions",
                self._prefix,
                self._command.controller_id,
                self._epoch,
                self._correlation_id,
                followers,
            )

    def metadata_updated(self, added: int, deleted: int) -> None:
        """Log that UpdateMetadata was applied."""
        _logger.info(
            "%s Add %d partitions and deleted %d partitions from metadata cache in response to"
            " UpdateMetadata request sent by controller %d epoch %d with correlation id %d",
            self._prefix,
            added,
            deleted,
            self._command.controller_id,
            self._epoch,
            self._correlation_id,
        )


def _listed(replicas: Iterable[int]) -> str:
    return f"[{','.join(map(str, replicas))}]"


def _option_and_epoch(before: tuple[int, int]) -> tuple[str, int]:
    leader, epoch = before
    return "None" if epoch == NO_EPOCH else f"Some({leader})", epoch
