"""DeleteTopics (key 20), versions 0-6.

Behaviour: queues each topic in `/admin/delete_topics`. The response is sent when this broker's
metadata no longer has the topics, or after `timeoutMs`. Version notes: v3 TOPIC_DELETION_DISABLED;
v5 messages; v6 by topic id. Beyond a quota, v5 and later are refused, and older requests throttled
(KIP-599).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.admin.topic_admin import Charge, TopicAdmin
from kafkapy.server.api.authorization import Action, Authorization, log_denied
from kafkapy.server.api.handler_support import (
    await_topics,
    distinct,
    mutations,
    require_controller,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler, Work, run_paced

_STRICT_SINCE: Final = 5


@dataclass(frozen=True)
class Handler:
    """Deletes topics."""

    admin: TopicAdmin
    is_enabled: bool
    controller: ControllerTask
    metadata: MetadataCache
    waiter: MetadataWaiter
    authorization: Authorization
    quotas: ClientQuotas
    slices: SliceScheduler

    def handle(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> ResponseCoroutine[DeleteTopicsResponse]:
        """Delete each topic, then wait until all are gone."""
        require_controller(self.controller)
        return self._delete_all(context, request)

    def _resolve_topics(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> Work[list[DeletableTopicResult]]:
        """A row for each requested topic. It has the topic's name, or an error if the topic is
        unknown or the caller may not delete it. The name for an id is only returned to callers that
        may describe the topic.
        """
        rows = []
        if context.version < 6:
            for name in dict.fromkeys(request.topic_names):
                rows.append(self._authorize(context, DeletableTopicResult(name=name)))
                yield ROW_UNITS
            return rows
        image = self.metadata.image
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
            elif topic.name is None and not self.authorization.is_allowed(
                context, Operation.DESCRIBE, ResourceKind.TOPIC, row.name
            ):
                row.name, row.error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else:
                self._authorize(context, row)
        return rows

    def _authorize(
        self, context: RequestContext, row: DeletableTopicResult
    ) -> DeletableTopicResult:
        action = Action(Operation.DELETE, ResourceKind.TOPIC, row.name or "")
        if not self.authorization.is_allowed(context, *action):
            log_denied(context, action)
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return row

    async def _delete_all(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        mutation_quota = mutations(self.quotas, context, _STRICT_SINCE)
        deleted: list[DeletableTopicResult] = []
        pace = self.slices.pace()
        rows = await run_paced(self._resolve_topics(context, request), pace)
        for row in rows:
            await pace.charge(2 * ROW_UNITS)
            if row.error_code or row.name is None:
                continue
            # The topic of an id may be deleted by now, and a new topic may have its name.
            topic_id = None if row.topic_id.is_zero else row.topic_id
            if topic_id is None:
                known = self.metadata.image.topics.get(row.name)
                row.topic_id = known.topic_id if known is not None else Uuid(ZERO_UUID)
            try:
                await self._delete(context, row.name, mutation_quota.charge, topic_id)
                deleted.append(row)
            except ApiError as error:
                if error.code is ErrorCode.UNKNOWN_TOPIC_ID:
                    row.name = None
                row.error_code, row.error_message = error.code, error.own_message
        left_ms = self.waiter.countdown(request.timeout_ms)
        await await_topics(
            deleted,
            lambda row, ms: self.waiter.wait_until_topics_removed([row.name or ""], ms),
            left_ms,
            pace,
        )
        return DeleteTopicsResponse(throttle_time_ms=mutation_quota.pause_ms(), responses=rows)

    async def _delete(
        self, context: RequestContext, name: str, charge: Charge, topic_id: Uuid | None
    ) -> None:
        if not self.is_enabled:
            disabled = ErrorCode.TOPIC_DELETION_DISABLED
            raise ApiError(disabled if context.version >= 3 else ErrorCode.INVALID_REQUEST)
        await self.admin.delete_topic(name, charge, topic_id)


def refuse(request: DeleteTopicsRequest, error: ApiError, version: int) -> DeleteTopicsResponse:
    """The same error for every topic."""
    if version >= 6:
        rows = [DeletableTopicResult(name=t.name, topic_id=t.topic_id) for t in request.topics]
    else:
        rows = [DeletableTopicResult(name=name) for name in request.topic_names]
    for row in rows:
        row.error_code, row.error_message = error.code, error.message
    return DeleteTopicsResponse(responses=rows)
