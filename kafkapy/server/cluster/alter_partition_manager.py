"""The leader's side of AlterPartition: proposals to the controller, answers to the partitions
(`kafka.server.AlterPartitionManager`, KIP-497).

One request is in flight at a time; proposals that arrive meanwhile go into the next one. A proposal
without an answer (no controller, a lost connection, an error for the whole request) is sent again.
Only an answer for its partition, or a LeaderAndIsr, ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.lasting_work import keep_running
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    AlterPartitionResult,
    Event,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.replication.isr import IsrChange, ProposalOutcome
from kafkapy.replication.partition import Partition
from kafkapy.server.cluster.controller_codec import (
    TOPIC_IDS_VERSION,
    alter_partition_request,
    alter_partition_result,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_to_controller import NodeToController, request_own_controller

if TYPE_CHECKING:
    from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.DefaultAlterPartitionManager")
partition_logger = logging.getLogger("kafka.cluster.Partition")

RETRY_BACKOFF_MS: Final = 50
_VERSION_MAX: Final = 3


class _Proposal(NamedTuple):
    partition: Partition
    change: IsrChange

    @property
    def is_current(self) -> bool:
        """Whether the partition still waits for the answer to this change."""
        return self.partition.is_leader and self.partition.in_sync.pending is self.change


_Items = dict[AlterPartitionItem, _Proposal]


class AlterPartitionManager:
    """Sends proposals. `submit_event` is the queue of this broker's own controller, which gets the
    proposals while it is the active one."""

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        metadata: MetadataCache,
        replicas: ReplicaManager,
        controller: NodeToController,
        submit_event: Callable[[Event], None],
        clock: Clock,
        *,
        retry_backoff_ms: int = RETRY_BACKOFF_MS,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._metadata = metadata
        self._replicas = replicas
        self._controller = controller
        self._submit_event = submit_event
        self._clock = clock
        self._retry_backoff_s = retry_backoff_ms / 1000
        self._unsent: dict[TopicPartition, _Proposal] = {}
        self._in_flight: list[_Proposal] = []
        self._wake = asyncio.Event()
        self._last_error = ""  # error of the last request, logged once; or empty
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to send."""
        work = keep_running("AlterPartition", self._run, logger, self._requeue)
        self._task = asyncio.get_running_loop().create_task(work)

    async def stop(self) -> None:
        """Stop sending. Proposals without an answer are left to the next leader."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._controller.close()

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Queue the change that has just become the partition's pending one."""
        self._unsent[change.topic_partition] = _Proposal(partition, change)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._in_flight = [each for each in self._unsent.values() if each.is_current]
            self._unsent.clear()
            if self._in_flight:
                self._in_flight = await self._propose(self._in_flight)
            if self._in_flight:
                self._requeue()
                await asyncio.sleep(self._retry_backoff_s)

    def _requeue(self) -> None:
        """Send again the proposals without an answer, but for those that newer ones replaced."""
        for proposal in self._in_flight:
            self._unsent.setdefault(proposal.change.topic_partition, proposal)
        self._wake.set()

    async def _propose(self, batch: list[_Proposal]) -> list[_Proposal]:
        """Send one request. Returns the proposals that must be sent again."""
        own = self._metadata.image.controller_id == self._broker_id
        try:
            items, result = await (self._request_own(batch) if own else self._request_remote(batch))
            error = "" if result.error is ErrorCode.NONE else result.error.name
        except NodeUnavailable as unavailable:
            error = str(unavailable)
        if error and error != self._last_error:
            logger.warning("AlterPartition for %d partitions: %s, retrying", len(batch), error)
        self._last_error = error
        return batch if error else self._apply(items, result)

    async def _request_own(self, batch: list[_Proposal]) -> tuple[_Items, AlterPartitionResult]:
        items = _items(batch, by_name=False)
        epoch = self._broker_epoch()
        result: AlterPartitionResult = await request_own_controller(
            self._submit_event,
            lambda reply: AlterPartition(self._broker_id, epoch, list(items), reply),
        )
        return items, result

    async def _request_remote(self, batch: list[_Proposal]) -> tuple[_Items, AlterPartitionResult]:
        client = self._controller.client()
        _, latest = (await client.api_versions()).get(ApiKey.ALTER_PARTITION, (0, -1))
        version = min(latest, _VERSION_MAX)
        if any(proposal.change.topic_id.is_zero for proposal in batch):
            version = min(version, TOPIC_IDS_VERSION - 1)
        if version < 0:
            raise NodeUnavailable("the controller does not serve AlterPartition")
        items = _items(batch, by_name=version < TOPIC_IDS_VERSION)
        requested = list(items)
        request = alter_partition_request(self._broker_id, self._broker_epoch(), requested, version)
        response = await client.request(request, version)
        return items, alter_partition_result(response, requested, version)

    def _apply(self, items: _Items, result: AlterPartitionResult) -> list[_Proposal]:
        """Pass the answers to the partitions. Returns the proposals to send again: without an
        answer, or with `ProposalOutcome.RETRY`."""
        unanswered = dict(items)
        to_retry = []
        for item, error, state in result.rows:
            proposal = unanswered.pop(item)
            if self._answer(proposal, error, state) is ProposalOutcome.RETRY:
                to_retry.append(proposal)
        return [*to_retry, *unanswered.values()]

    def _answer(
        self, proposal: _Proposal, error: ErrorCode, state: LeaderAndIsr | None
    ) -> ProposalOutcome:
        partition, change = proposal
        members = len(partition.isr)
        answered = partition.on_alter_partition_response(
            change, error, state, self._clock.monotonic_ms()
        )
        if answered is ProposalOutcome.COMMITTED:
            self._replicas.isr_counts.record_change(members, len(partition.isr))
            partition_logger.info(
                "[Partition %s broker=%d] ISR updated to %s and version updated to %d",
                partition.topic_partition,
                self._broker_id,
                ",".join(map(str, sorted(partition.isr))),
                partition.partition_epoch,
            )
        elif error is not ErrorCode.NONE:
            self._replicas.isr_counts.failed_updates += 1
            partition_logger.info(
                "[Partition %s broker=%d] Failed to alter partition to ISR %s since the controller"
                " answered %s: %s",
                partition.topic_partition,
                self._broker_id,
                ",".join(map(str, change.isr)),
                error.name,
                answered.value,
            )
        if answered in (ProposalOutcome.COMMITTED, ProposalOutcome.DROPPED):
            self._replicas.check_delayed_requests(partition)
        return answered


def _items(batch: list[_Proposal], by_name: bool) -> _Items:
    """The request's items. Topics have names if the request does, or if they have no id."""
    items = {}
    for proposal in batch:
        change = proposal.change
        (topic, partition), topic_id = change.topic_partition, change.topic_id
        item = AlterPartitionItem(
            topic if by_name or topic_id.is_zero else "",
            topic_id,
            partition,
            change.leader_epoch,
            change.isr,
            change.leader_recovery_state,
            change.partition_epoch,
            change.isr_epochs,
        )
        items[item] = proposal
    return items
