"""FindCoordinator (key 10), versions 0-6.

Behaviour: the leader of the group's `__consumer_offsets` partition, or of the transactional id's
`__transaction_state` partition; a missing topic is created, and COORDINATOR_NOT_AVAILABLE answered
if it is refused, at once, or if it has no leaders after a moment.
Version notes: v4 takes many keys and answers each by itself (KIP-699).
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    partition_for_key,
)
from kafkapy.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.server.api.handler_support import metadata_known, mutations, run_async
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, Work, finish

_TOPICS = {0: GROUP_METADATA_TOPIC, 1: TRANSACTION_STATE_TOPIC}
"""By key type."""
_WAIT_MS = 1000


def handle(context: RequestContext, request: FindCoordinatorRequest) -> Work[Any]:
    """Find the coordinator of each key."""
    broker = context.broker
    topic = _TOPICS.get(request.key_type)
    if topic is None or (broker.waiter.is_known and topic in broker.metadata.image.topics):
        return (yield from _response(context, request))

    async def create() -> FindCoordinatorResponse:
        await metadata_known(context)
        charge = mutations(context).charge
        await context.broker.auto_creator.create([topic], _WAIT_MS, charge)
        pace = context.broker.turns.pace()
        return await finish(_response(context, request), pace)

    return run_async(context, create(), lambda error: refuse(request, error, context.version))


def _response(
    context: RequestContext, request: FindCoordinatorRequest
) -> Work[FindCoordinatorResponse]:
    keys = request.coordinator_keys if context.version >= 4 else [request.key]
    rows = []
    for key in dict.fromkeys(keys):
        rows.append(_find(context, request.key_type, key))
        yield ROW_UNITS
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


def _find(context: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type not in _TOPICS:
        return _missing(key, ErrorCode.INVALID_REQUEST)
    topic = context.broker.metadata.image.topics.get(_TOPICS[key_type])
    if topic is None:
        return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(partition_for_key(key, len(topic.partitions)))
    leader = partition.leader if partition is not None else -1
    for node, host, port, _ in context.broker.nodes(context.listener):
        if node == leader:
            return Coordinator(key=key, node_id=node, host=host, port=port)
    return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _missing(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.name
    )


def refuse(
    request: FindCoordinatorRequest, error: ApiError, version: int
) -> FindCoordinatorResponse:
    """The error, for each key where the version has rows."""
    keys = request.coordinator_keys if version >= 4 else []
    return FindCoordinatorResponse(
        error_code=error.code,
        error_message=error.message,
        node_id=-1,
        port=-1,
        coordinators=[_missing(key, error.code) for key in keys],
    )
