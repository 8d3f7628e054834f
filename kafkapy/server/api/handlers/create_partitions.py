"""CreatePartitions (key 37), versions 0-3.

Behaviour: writes the topic's larger assignment; answers when every new partition has a leader here.
What a quota does not allow is refused since v3, paused for before (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkapy.server.api.handler_support import mutations, require_controller, run_async, told
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import CHANGE_UNITS

_STRICT_SINCE: Final = 3


def handle(context: RequestContext, request: CreatePartitionsRequest) -> Any:
    """Grow each topic."""
    require_controller(context)
    work = _grow_all(context, request)
    return run_async(context, work, lambda error: refuse(request, error, context.version))


async def _grow_all(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    broker = context.broker
    allowed = mutations(context, _STRICT_SINCE)
    counts = Counter(topic.name for topic in request.topics)
    results = []
    pace = broker.turns.pace()
    for topic in request.topics:
        await pace.spend(CHANGE_UNITS)
        row = CreatePartitionsTopicResult(name=topic.name)
        results.append(row)
        try:
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            await broker.topic_admin.create_partitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else [list(assignment.broker_ids) for assignment in topic.assignments],
                request.validate_only,
                allowed.charge,
            )
            if not request.validate_only and not await broker.waiter.topics_ready(
                [topic.name], request.timeout_ms, topic.count
            ):
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        except ApiError as error:
            row.error_code, row.error_message = error.code, told(error)
    return CreatePartitionsResponse(throttle_time_ms=allowed.pause_ms(), results=results)


def refuse(
    request: CreatePartitionsRequest, error: ApiError, version: int
) -> CreatePartitionsResponse:
    """The same error for every topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=t.name, error_code=error.code, error_message=error.message
            )
            for t in request.topics
        ]
    )
