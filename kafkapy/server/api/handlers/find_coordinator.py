"""FindCoordinator (key 10), versions 0-6.

Behaviour: returns the leader of the group's `__consumer_offsets` partition, of the transactional
id's `__transaction_state` partition, or of a share partition's `__share_group_state` partition. A
missing topic is created. The response is COORDINATOR_NOT_AVAILABLE if the creation is refused, or
if the partition has no leader after a short time. Keys are mapped to partitions by the
coordinators, which do not move groups when the topic grows. Version notes: v4 has many keys, each
with its own result (KIP-699).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kafkapy.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.server.admin.auto_creator import CREATION_WAIT_MS, AutoCreator
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.handler_support import await_metadata, mutations, refusal, run_async
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler, Work, hash_units, run_paced

_TOPICS_BY_KEY_TYPE = {
    0: GROUP_METADATA_TOPIC,
    1: TRANSACTION_STATE_TOPIC,
    2: SHARE_GROUP_STATE_TOPIC,
}
"""Internal topics, by key type."""
_SHARE_KEY_TYPE = 2

PartitionFor = Callable[[str], int]
"""The partition of an internal topic that a key belongs to."""


@dataclass(frozen=True)
class Handler:
    """Finds coordinators of groups, transactions and share partitions. `partition_for` is by key
    type.
    """

    cluster: ClusterView
    partition_for: Mapping[int, PartitionFor]
    waiter: MetadataWaiter
    creator: AutoCreator
    quotas: ClientQuotas
    slices: SliceScheduler
    tasks: BackgroundTasks

    def handle(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> Work[Outcome[FindCoordinatorResponse]]:
        """Find the coordinator of each key."""
        topic = _TOPICS_BY_KEY_TYPE.get(request.key_type)
        if topic is None or (self.waiter.is_complete and topic in self.cluster.image.topics):
            return (yield from self._response(context, request))

        async def create() -> FindCoordinatorResponse:
            await await_metadata(self.waiter)
            charge = mutations(self.quotas, context).charge
            await self.creator.create([topic], CREATION_WAIT_MS, charge)
            pace = self.slices.pace()
            return await run_paced(self._response(context, request), pace)

        to_refusal = partial(refusal, refuse, request, version=context.version)
        return run_async(self.tasks, context, create(), to_refusal)

    def _response(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> Work[FindCoordinatorResponse]:
        keys = request.coordinator_keys if context.version >= 4 else [request.key]
        rows = []
        for key in dict.fromkeys(keys):
            rows.append(self._find(context, request.key_type, key))
            yield ROW_UNITS + hash_units(key)
        if context.version >= 4:
            return FindCoordinatorResponse(coordinators=rows)
        row = rows[0]
        return FindCoordinatorResponse(
            error_code=row.error_code,
            error_message=row.error_message,
            node_id=row.node_id,
            host=row.host,
            port=row.port,
        )

    def _find(self, context: RequestContext, key_type: int, key: str) -> Coordinator:
        if key_type not in _TOPICS_BY_KEY_TYPE or (
            key_type == _SHARE_KEY_TYPE and key.count(":") < 2
        ):
            return _error_row(key, ErrorCode.INVALID_REQUEST)
        topic = self.cluster.image.topics.get(_TOPICS_BY_KEY_TYPE[key_type])
        if topic is None:
            return _error_row(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partition = topic.partitions.get(self.partition_for[key_type](key))
        leader = partition.leader if partition is not None else -1
        for node, host, port, _ in self.cluster.nodes(context.listener):
            if node == leader:
                return Coordinator(key=key, node_id=node, host=host, port=port)
        return _error_row(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _error_row(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.name
    )


def refuse(
    request: FindCoordinatorRequest, error: ApiError, version: int
) -> FindCoordinatorResponse:
    """The error; from v4 on, for each key."""
    keys = request.coordinator_keys if version >= 4 else []
    return FindCoordinatorResponse(
        error_code=error.code,
        error_message=error.message,
        node_id=-1,
        port=-1,
        coordinators=[_error_row(key, error.code) for key in keys],
    )
