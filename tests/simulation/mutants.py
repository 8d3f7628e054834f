"""Production code broken on purpose: each mutant breaks one rule that a checker must miss.

A mutant is a context manager: inside, the rule is broken in this process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest import mock

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.controller import election
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.group_offsets import GroupOffsets
from kafkapy.coordinator.transactions import markers, requests
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import InitProducerId
from kafkapy.coordinator.transactions.state import Transaction, TransactionState
from kafkapy.replication.delayed_produce import DelayedProduce
from kafkapy.replication.follower_fetcher import FollowerFetcher
from kafkapy.replication.partition import Partition
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.zk.stores import election_store, znodes

Mutant = Callable[[], AbstractContextManager[Any]]


def no_truncation_by_epoch() -> AbstractContextManager[Any]:
    """Leaders do not say where a follower's log parts from theirs (before KIP-101)."""
    return mock.patch.object(Partition, "_diverging_epoch", return_value=None)


def truncation_to_the_high_watermark() -> AbstractContextManager[Any]:
    """Followers cut their logs to their own high watermark before they fetch (before KIP-101)."""
    follow = FollowerFetcher.follow

    def broken(self: FollowerFetcher, partition: Partition) -> None:
        log = partition.log
        if log.log_end_offset > log.high_watermark:
            log.truncate_to(max(log.high_watermark, log.log_start_offset))
        follow(self, partition)

    return mock.patch.object(FollowerFetcher, "follow", broken)


def acknowledgement_before_replication() -> AbstractContextManager[Any]:
    """acks=all is answered when the leader has the records."""

    def broken(self: DelayedProduce) -> bool:
        for wait in self.waits:
            wait.error = ErrorCode.NONE
        return True

    return mock.patch.object(DelayedProduce, "ready", broken)


def controller_epoch_not_incremented() -> AbstractContextManager[Any]:
    """Whoever is elected controller acts in the first epoch."""
    decode = znodes.decode_controller_epoch
    return mock.patch.object(
        election_store, "decode_controller_epoch", lambda data: max(decode(data), 1) - 1
    )


def stale_controllers_obeyed() -> AbstractContextManager[Any]:
    """Brokers do as they are told by controllers that have been replaced."""

    def broken(self: ReplicaManager, controller_epoch: int) -> bool:
        self.controller_epoch = controller_epoch
        return False

    return mock.patch.object(ReplicaManager, "is_stale_controller", broken)


def leader_epoch_not_incremented() -> AbstractContextManager[Any]:
    """A new leader leads on in the epoch of the one before."""

    def broken(state: LeaderAndIsr, **changes: Any) -> LeaderAndIsr:
        changes.pop("leader_epoch", None)
        return dataclasses.replace(state, **changes)

    return mock.patch.object(election, "replace", broken)


def high_watermark_of_the_fastest() -> AbstractContextManager[Any]:
    """The high watermark follows the leader and its fastest follower, not the slowest in sync."""

    def broken(self: Partition, now_ms: int) -> bool:
        if not self.is_leader:
            return False
        ends = [r.log_end_offset for r in self.remote_replicas.values()]
        before = self.log.high_watermark
        end = min(max(ends, default=self.log.log_end_offset), self.log.log_end_offset)
        return end > before and self.log.update_high_watermark(end) > before

    return mock.patch.object(Partition, "maybe_increment_high_watermark", broken)


def high_watermark_begins_anew() -> AbstractContextManager[Any]:
    """With a change of the ISR the high watermark starts from where the leader began."""
    on_isr_answer = Partition.on_isr_answer

    def broken(self: Partition, *args: Any) -> Any:
        self.log.update_high_watermark(self.leader_epoch_start_offset)
        return on_isr_answer(self, *args)

    return mock.patch.object(Partition, "on_isr_answer", broken)


def reassignment_reorders_its_target() -> AbstractContextManager[Any]:
    """A reassignment ends with the replicas of its target, in another order."""
    reassign_to = ReplicaAssignment.reassign_to

    def broken(self: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
        return reassign_to(self, target[::-1])

    return mock.patch.object(ReplicaAssignment, "reassign_to", broken)


def an_open_transaction_is_left_to_the_next_instance() -> AbstractContextManager[Any]:
    """A new producer gets a transactional id at once: the open transaction is not aborted."""

    def broken(core: Core, token: Token, transaction: Transaction) -> None:
        transaction.state = TransactionState.EMPTY
        transaction.partitions.clear()
        request = InitProducerId(transaction.transactional_id, transaction.timeout_ms)
        requests._next_producer(core, token, transaction, request)

    return mock.patch.object(requests, "_fence", broken)


def nobody_ends_what_another_has_decided() -> AbstractContextManager[Any]:
    """A new coordinator leaves the transactions that the one before had decided as they are."""
    return mock.patch.object(markers, "resume")


def offsets_of_transactions_count_at_once() -> AbstractContextManager[Any]:
    """Offsets that a producer commits do not wait for its marker."""
    succeed = GroupOffsets.succeed

    def broken(self: GroupOffsets, commits: Any, log_offset: int, _producer_id: int = -1) -> None:
        succeed(self, commits, log_offset)

    return mock.patch.object(GroupOffsets, "succeed", broken)


MUTANTS: Final[dict[str, Mutant]] = {
    mutant.__name__: mutant
    for mutant in (
        no_truncation_by_epoch,
        truncation_to_the_high_watermark,
        acknowledgement_before_replication,
        controller_epoch_not_incremented,
        stale_controllers_obeyed,
        leader_epoch_not_incremented,
        high_watermark_of_the_fastest,
        high_watermark_begins_anew,
        reassignment_reorders_its_target,
        an_open_transaction_is_left_to_the_next_instance,
        nobody_ends_what_another_has_decided,
        offsets_of_transactions_count_at_once,
    )
}
