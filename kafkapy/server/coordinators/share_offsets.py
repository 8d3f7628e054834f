"""Offsets of share groups for administrators. The group coordinator has the list of share
partitions, and the share coordinators have their state.

Kafka: `GroupCoordinatorService.describeShareGroupOffsets` and its neighbours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import (
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
)
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import (
    TopicIdPartition,
    assignment_of,
    partitions_of,
)
from kafkapy.coordinator.groups.share.messages import (
    AlterShareOffsets,
    DeleteShareOffsets,
    ListShareStates,
    ShareStatesDeleted,
    ShareStatesResult,
    StateRequest,
)
from kafkapy.coordinator.shares.messages import (
    DeleteState,
    InitializeState,
    ReadSummary,
    StateResult,
)
from kafkapy.coordinator.shares.messages import StateRequest as CoordinatorRequest
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.requests.turns import SliceScheduler, hash_units

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.share_persister import SharePersister

UNKNOWN_LAG: Final = -1
_LIST_OFFSETS_VERSION: Final = 7
_LATEST: Final = -1
_REQUEST_UNITS: Final = 60


class ShareOffset(NamedTuple):
    """The state of a share partition, with its start offset, and the number of records left to
    deliver."""

    state: StateResult
    lag: int = UNKNOWN_LAG


class ShareOffsets:
    """Fixed: the group coordinator of this broker, and the clients of other brokers."""

    def __init__(
        self,
        groups: GroupService,
        persister: SharePersister,
        metadata: MetadataCache,
        nodes: NodeClients,
        slices: SliceScheduler,
    ) -> None:
        self._groups = groups
        self._persister = persister
        self._metadata = metadata
        self._nodes = nodes
        self._slices = slices
        self._groups_in_change: set[str] = set()
        """Groups whose share partition states are being initialized or deleted."""

    @contextmanager
    def _one_change(self, group_id: str) -> Iterator[None]:
        """Allow one change of a group's states at a time. If a later change overtook an earlier one
        at a share coordinator, the earlier one would undo it.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS, another change is under way.
        """
        if group_id in self._groups_in_change:
            message = "Share partitions of the group are just being altered or deleted."
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)
        self._groups_in_change.add(group_id)
        try:
            yield
        finally:
            self._groups_in_change.remove(group_id)

    async def share_partitions(self, group_id: str) -> set[TopicIdPartition]:
        """The share partitions of a group.

        Raises:
            ApiError: this broker does not coordinate such a share group.
        """
        listed = self._groups.coordinator.list_share_states
        result = await self._run_internal(listed, ListShareStates(group_id))
        return set(partitions_of(result.partitions))

    async def describe(
        self, group_id: str, partitions: Sequence[TopicIdPartition]
    ) -> dict[TopicIdPartition, ShareOffset]:
        """The offsets of share partitions."""
        requests = [ReadSummary(SharePartitionKey(group_id, *each)) for each in partitions]
        states = await self._send_all(requests)
        lags = await asyncio.gather(
            *(self._lag(each, state) for each, state in zip(partitions, states, strict=True))
        )
        return dict(zip(partitions, map(ShareOffset, states, lags), strict=True))

    async def _lag(self, partition: TopicIdPartition, state: StateResult) -> int:
        """The number of records from the start offset on, without those whose delivery is
        complete."""
        if state.start_offset == UNINITIALIZED_START_OFFSET:
            return UNKNOWN_LAG
        if state.delivery_complete_count == UNKNOWN_COUNT:
            return UNKNOWN_LAG
        topic = self._metadata.image.topic_names_by_id.get(partition.topic_id)
        known = self._metadata.image.partition(topic or "", partition.partition)
        if topic is None or known is None:
            return UNKNOWN_LAG
        row = ListOffsetsPartition(partition_index=partition.partition, timestamp=_LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[row])]
        )
        try:
            answer = await self._nodes.client_for(known.leader).request(
                request, _LIST_OFFSETS_VERSION
            )
        except NodeUnavailable:
            return UNKNOWN_LAG
        found = answer.topics[0].partitions[0]
        if found.error_code or found.offset < 0:
            return UNKNOWN_LAG
        return max(0, int(found.offset) - state.start_offset - state.delivery_complete_count)

    async def alter(
        self, group_id: str, offsets: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, StateResult]:
        """Initialize share partitions again, at these offsets.

        Raises:
            ApiError: the group has members, is being changed, or is not coordinated here.
        """
        with self._one_change(group_id):
            return await self._alter(group_id, offsets)

    async def _alter(
        self, group_id: str, offsets: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, StateResult]:
        wanted = assignment_of(set(offsets))
        request = AlterShareOffsets(group_id, {t: sorted(rows) for t, rows in wanted.items()})
        altered = await self._run_internal(self._groups.coordinator.alter_share_offsets, request)
        epoch = altered.state_epoch
        results = await self._send_all(
            [
                InitializeState(SharePartitionKey(group_id, *partition), epoch, offset)
                for partition, offset in offsets.items()
            ]
        )
        found = dict(zip(offsets, results, strict=True))
        altered_partitions = {
            each for each, result in found.items() if result.error is ErrorCode.NONE
        }
        if altered_partitions:
            done = StateRequest(group_id, epoch, assignment_of(altered_partitions))
            await self._run_internal(self._groups.coordinator.share_states_altered, done)
        return found

    async def delete(
        self, group_id: str, topic_ids: Sequence[Uuid] | None
    ) -> dict[Uuid, ErrorCode]:
        """Delete the share partitions of topics, or of all topics. Returns the outcome for each
        topic that had any.

        Raises:
            ApiError: the group has members, is being changed, or is not coordinated here.
        """
        with self._one_change(group_id):
            return await self._delete(group_id, topic_ids)

    async def _delete(
        self, group_id: str, topic_ids: Sequence[Uuid] | None
    ) -> dict[Uuid, ErrorCode]:
        coordinator = self._groups.coordinator
        request = DeleteShareOffsets(group_id, topic_ids)
        marked = await self._run_internal(coordinator.delete_share_offsets, request)
        partitions = list(partitions_of(marked.partitions))
        results = await self._send_all(
            [DeleteState(SharePartitionKey(group_id, *partition)) for partition in partitions]
        )
        errors = dict.fromkeys(marked.partitions, ErrorCode.NONE)
        for partition, result in zip(partitions, results, strict=True):
            if result.error is not ErrorCode.NONE:
                errors[partition.topic_id] = result.error
        deleted = [topic_id for topic_id, error in errors.items() if error is ErrorCode.NONE]
        failed = [topic_id for topic_id in errors if topic_id not in deleted]
        if errors:
            ended = ShareStatesDeleted(group_id, deleted, failed)
            await self._run_internal(coordinator.share_states_deleted, ended)
        return errors

    async def _send_all(self, requests: Sequence[CoordinatorRequest]) -> list[StateResult]:
        futures, pace = [], self._slices.pace()
        for request in requests:
            await pace.charge(_REQUEST_UNITS + 4 * hash_units(request.key.group_id))
            future: asyncio.Future[StateResult] = asyncio.get_running_loop().create_future()
            self._persister.send(request, _result_setter(future))
            futures.append(future)
        return list(await asyncio.gather(*futures))

    async def _run_internal(
        self, method: Callable[[int, Any, Any], Any], request: Any
    ) -> ShareStatesResult:
        """Run a request of the group coordinator.

        Raises:
            ApiError: the group coordinator refuses.
        """
        future: asyncio.Future[ShareStatesResult] = asyncio.get_running_loop().create_future()
        self._groups.run_internal(method, request, _result_setter(future))
        result = await future
        if result.error is not ErrorCode.NONE:
            raise ApiError(result.error, result.message)
        return result

    def close(self) -> None:
        """Drop the connections."""
        self._nodes.close()


def _result_setter(future: asyncio.Future[Any]) -> Callable[[Any], None]:
    def set_result(result: Any) -> None:
        if not future.done():  # the caller was cancelled
            future.set_result(result)

    return set_result
