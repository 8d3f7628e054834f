"""DeleteTopics (key 20), versions 0-6.

Behaviour: queues each topic in `/admin/delete_topics`; answers when it has left this broker's
metadata. Version notes: v3 TOPIC_DELETION_DISABLED; v5 messages; v6 by topic id. What a
quota does not allow is refused since v5, paused for before (KIP-599).
"""

from __future__ import annotations

from typing import Any, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.admin.topic_admin import Charge
from kafkapy.server.api.authorization import Need, is_allowed, log_denied
from kafkapy.server.api.handler_support import (
    distinct,
    mutations,
    require_controller,
    run_async,
    told,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, Work, finish

_STRICT_SINCE: Final = 5


def handle(context: RequestContext, request: DeleteTopicsRequest) -> Any:
    """Delete each topic, then wait until all are gone."""
    require_controller(context)
    work = _delete_all(context, request)
    return run_async(context, work, lambda error: refuse(request, error, context.version))


def _resolved(
    context: RequestContext, request: DeleteTopicsRequest
) -> Work[list[DeletableTopicResult]]:
    """A row for each topic asked for, with its name; or with an error, if it is unknown or not the
    caller's to delete. Only those who may describe a topic learn the name that an id has."""
    rows = []
    if context.version < 6:
        for name in dict.fromkeys(request.topic_names):
            rows.append(_authorized(context, DeletableTopicResult(name=name)))
            yield ROW_UNITS
        return rows
    image = context.broker.metadata.image
    for topic in distinct(request.topics, lambda topic: (topic.name, topic.topic_id)):
        row = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        rows.append(row)
        yield ROW_UNITS
        if topic.name is not None and not topic.topic_id.is_zero:
            row.error_code = ErrorCode.INVALID_REQUEST
            row.error_message = "Topic name and topic ID can not both be specified."
            continue
        row.name = image.topic_name(topic.name, topic.topic_id)
        if row.name is None:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif topic.name is None and not is_allowed(
            context, Operation.DESCRIBE, ResourceKind.TOPIC, row.name
        ):
            row.name, row.error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            _authorized(context, row)
    return rows


def _authorized(context: RequestContext, row: DeletableTopicResult) -> DeletableTopicResult:
    need = Need(Operation.DELETE, ResourceKind.TOPIC, row.name or "")
    if not is_allowed(context, *need):
        log_denied(context, need)
        row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return row


async def _delete_all(
    context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    broker = context.broker
    allowed = mutations(context, _STRICT_SINCE)
    gone: list[DeletableTopicResult] = []
    pace = broker.turns.pace()
    rows = await finish(_resolved(context, request), pace)
    for row in rows:
        await pace.spend(2 * ROW_UNITS)
        if row.error_code or row.name is None:
            continue
        known = broker.metadata.image.topics.get(row.name)
        row.topic_id = known.topic_id if known is not None else Uuid(ZERO_UUID)
        try:
            await _delete(context, row.name, allowed.charge)
            gone.append(row)
        except ApiError as error:
            row.error_code, row.error_message = error.code, told(error)
    for row in gone:
        await pace.spend(ROW_UNITS)
        if not await broker.waiter.topics_gone([row.name or ""], request.timeout_ms):
            row.error_code = ErrorCode.REQUEST_TIMED_OUT
            row.error_message = "The request timed out."
    return DeleteTopicsResponse(throttle_time_ms=allowed.pause_ms(), responses=rows)


async def _delete(context: RequestContext, name: str, charge: Charge) -> None:
    if not context.broker.config.get_bool("delete.topic.enable"):
        disabled = ErrorCode.TOPIC_DELETION_DISABLED
        raise ApiError(disabled if context.version >= 3 else ErrorCode.INVALID_REQUEST)
    await context.broker.topic_admin.delete_topic(name, charge)


def refuse(request: DeleteTopicsRequest, error: ApiError, version: int) -> DeleteTopicsResponse:
    """The same error for every topic."""
    if version >= 6:
        rows = [DeletableTopicResult(name=t.name, topic_id=t.topic_id) for t in request.topics]
    else:
        rows = [DeletableTopicResult(name=name) for name in request.topic_names]
    for row in rows:
        row.error_code, row.error_message = error.code, error.message
    return DeleteTopicsResponse(responses=rows)
