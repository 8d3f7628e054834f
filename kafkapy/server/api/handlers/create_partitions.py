"""CreatePartitions (key 37), versions 0-3.

Behaviour: writes the topic's larger assignment. The response is sent when all its partitions have
leaders in this broker's metadata, or after `timeoutMs`. Beyond a quota, v3 and later are refused,
and older requests throttled (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkapy.server.admin.topic_admin import TopicAdmin
from kafkapy.server.api.handler_support import await_topics, mutations, require_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import CHANGE_UNITS, SliceScheduler

_STRICT_SINCE: Final = 3


@dataclass(frozen=True)
class Handler:
    """Adds partitions to topics."""

    admin: TopicAdmin
    controller: ControllerTask
    waiter: MetadataWaiter
    quotas: ClientQuotas
    slices: SliceScheduler

    def handle(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> ResponseCoroutine[CreatePartitionsResponse]:
        """Add partitions to each topic, then wait for the leaders of all."""
        require_controller(self.controller)
        return self._create_all(context, request)

    async def _create_all(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        mutation_quota = mutations(self.quotas, context, _STRICT_SINCE)
        counts = Counter(topic.name for topic in request.topics)
        results = []
        pace = self.slices.pace()
        for topic in request.topics:
            await pace.charge(CHANGE_UNITS)
            row = CreatePartitionsTopicResult(name=topic.name)
            results.append(row)
            try:
                if counts[topic.name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                await self.admin.create_partitions(
                    topic.name,
                    topic.count,
                    None
                    if topic.assignments is None
                    else [list(assignment.broker_ids) for assignment in topic.assignments],
                    request.validate_only,
                    mutation_quota.charge,
                )
            except ApiError as error:
                row.error_code, row.error_message = error.code, error.own_message
        if not request.validate_only:
            left_ms = self.waiter.countdown(request.timeout_ms)
            wanted = {topic.name: topic.count for topic in request.topics}
            await await_topics(
                [row for row in results if row.error_code == ErrorCode.NONE],
                lambda row, ms: self.waiter.wait_until_topics_ready(
                    [row.name], ms, wanted[row.name]
                ),
                left_ms,
                pace,
            )
        return CreatePartitionsResponse(throttle_time_ms=mutation_quota.pause_ms(), results=results)


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
