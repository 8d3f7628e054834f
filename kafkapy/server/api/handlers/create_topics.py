"""CreateTopics (key 19), versions 0-7.

Behaviour: validates and writes the znodes. The response is sent when every partition has a leader
in this broker's metadata. After `timeoutMs` it is REQUEST_TIMED_OUT, although the topic was
created. Version notes: v1 validate only; v5 returns partitions, replication factor and configs; v7
the topic id. Beyond a quota, v6 and later are refused, and older requests throttled (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkapy.server.admin.topic_admin import PARTITIONS_PER_REQUEST_MAX, Charge, TopicAdmin
from kafkapy.server.api.handler_support import (
    await_topics,
    limit_changes,
    mutations,
    require_controller,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import CHANGE_UNITS, SliceScheduler

_STRICT_SINCE: Final = 6


@dataclass(frozen=True)
class Handler:
    """Creates topics."""

    admin: TopicAdmin
    controller: ControllerTask
    waiter: MetadataWaiter
    configs: DynamicConfig
    quotas: ClientQuotas
    slices: SliceScheduler

    def handle(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> ResponseCoroutine[CreateTopicsResponse]:
        """Create each topic, then wait for the leaders of all."""
        require_controller(self.controller)
        limit_changes(len(request.topics))
        return self._create_all(context, request)

    async def _create_all(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        mutation_quota = mutations(self.quotas, context, _STRICT_SINCE)
        repeated = {n for n, count in Counter(t.name for t in request.topics).items() if count > 1}
        results = []
        pace = self.slices.pace()
        for topic in request.topics:
            partitions = len(topic.assignments) or max(0, topic.num_partitions)
            await pace.charge(
                CHANGE_UNITS + len(topic.configs) + 2 * min(partitions, PARTITIONS_PER_REQUEST_MAX)
            )
            row = CreatableTopicResult(name=topic.name, configs=[])
            if topic.name not in repeated:
                results.append(row)
                try:
                    await self._create(request, topic, row, mutation_quota.charge)
                except ApiError as error:
                    row.error_code, row.error_message = error.code, error.own_message
        for name in sorted(repeated):
            results.append(
                CreatableTopicResult(
                    name=name,
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message="Duplicate topic name.",
                    configs=[],
                )
            )
        if not request.validate_only:
            created = [row for row in results if row.error_code == ErrorCode.NONE]
            left_ms = self.waiter.countdown(request.timeout_ms)
            await await_topics(
                created,
                lambda row, ms: self.waiter.wait_until_topics_ready([row.name], ms),
                left_ms,
                pace,
            )
        return CreateTopicsResponse(throttle_time_ms=mutation_quota.pause_ms(), topics=results)

    async def _create(
        self,
        request: CreateTopicsRequest,
        topic: CreatableTopic,
        row: CreatableTopicResult,
        charge: Charge,
    ) -> None:
        assignment = {a.partition_index: list(a.broker_ids) for a in topic.assignments}
        created = await self.admin.create_topic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            assignment or None,
            {c.name: c.value for c in topic.configs},
            request.validate_only,
            charge,
        )
        row.topic_id = created.topic_id
        row.num_partitions = created.num_partitions
        row.replication_factor = created.replication_factor
        row.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source or ConfigSource.UNKNOWN,
                is_sensitive=entry.is_sensitive,
            )
            for entry in self.configs.topic(topic.name, created.configs)
        ]


def refuse(request: CreateTopicsRequest, error: ApiError, version: int) -> CreateTopicsResponse:
    """The same error for every topic."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=t.name, error_code=error.code, error_message=error.message, configs=[]
            )
            for t in request.topics
        ]
    )
