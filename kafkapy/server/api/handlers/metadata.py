"""Metadata (key 3), versions 0-13.

Behaviour: brokers, controller and topics of the last UpdateMetadata, with endpoints of the
request's listener only. An unknown topic is created if the broker and the request allow it. Then
the response waits up to 1 s for its leaders, so that a first produce does not fail with
LEADER_NOT_AVAILABLE. If the creation is refused, the response is sent at once, with that error
code. Version notes: in v0 an empty list means all topics, later null does; v4 a flag for auto
creation; v8-10 cluster operations; v10 topic ids; v12 look-up by id; v13 a top-level error after
which clients bootstrap again (KIP-1102), which Kafka's brokers do not send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import INTERNAL_TOPICS, validate_topic_name
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.image import TopicImage
from kafkapy.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkapy.server.admin.auto_creator import CREATION_WAIT_MS, AutoCreator
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.handler_support import await_metadata, mutations, refusal, run_async
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import (
    CHECK_UNITS,
    ROW_UNITS,
    SliceScheduler,
    Work,
    chunks,
    run_paced,
)

_FIRST_VERSION_WITH_IDS: Final = 12
_VERSIONS_WITHOUT_IDS: Final = (10, 11)  # rows have the id field, which must be zero
_NONE_REFUSED: Final[dict[str, ErrorCode]] = {}


@dataclass(frozen=True)
class Handler:
    """Describes the cluster to clients."""

    cluster: ClusterView
    waiter: MetadataWaiter
    creator: AutoCreator
    auto_create_topics: bool
    authorization: Authorization
    quotas: ClientQuotas
    slices: SliceScheduler
    tasks: BackgroundTasks

    def handle(
        self, context: RequestContext, request: MetadataRequest
    ) -> Work[Outcome[MetadataResponse]]:
        """Describe the brokers and the requested topics."""
        if context.version in _VERSIONS_WITHOUT_IDS:
            yield from _check_rows(request, context.version)
        if self.waiter.is_complete:
            missing = yield from self._topics_to_create(context, request)
            if not missing:
                return (yield from self._response(context, request))

        pending: Pending[MetadataResponse] = Pending()

        def is_awaited() -> bool:
            return not pending.done

        async def create_and_describe() -> MetadataResponse:
            await await_metadata(self.waiter)
            pace = self.slices.pace()
            missing = await run_paced(self._topics_to_create(context, request), pace)
            if missing:
                charge = mutations(self.quotas, context).charge
                create = self.creator.create
                refusals = await create(missing, CREATION_WAIT_MS, charge, is_awaited)
                return await run_paced(self._response(context, request, refusals), pace)
            return await run_paced(self._response(context, request), pace)

        to_refusal = partial(refusal, refuse, request, version=context.version)
        return run_async(self.tasks, context, create_and_describe(), to_refusal, pending)

    def _topics_to_create(
        self, context: RequestContext, request: MetadataRequest
    ) -> Work[list[str]]:
        """Unknown topics with valid names that may be created."""
        if _requests_all_topics(context, request) or not self.auto_create_topics:
            return []
        if context.version >= 4 and not request.allow_auto_topic_creation:
            return []
        topics = self.cluster.image.topics
        names: dict[str, None] = {}
        for wanted in request.topics or ():
            yield CHECK_UNITS
            if wanted.name and wanted.name not in topics and wanted.topic_id.is_zero:
                try:
                    validate_topic_name(wanted.name)
                except ApiError:
                    continue
                if self.authorization.may_create_topic(context, wanted.name):
                    names[wanted.name] = None
        return list(names)

    def _response(
        self,
        context: RequestContext,
        request: MetadataRequest,
        refusals: dict[str, ErrorCode] = _NONE_REFUSED,
    ) -> Work[MetadataResponse]:
        image = self.cluster.image
        reachable = {
            node: MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in self.cluster.nodes(context.listener)
        }
        topics = []
        if _requests_all_topics(context, request):
            for topic in image.topics.values():
                topics.append(self._topic(context, topic, reachable))
                yield ROW_UNITS + 2 * len(topic.partitions)
        else:
            # As in Kafka, a repeated id or name gets one row.
            requested: dict[str | Uuid | None, MetadataRequestTopic] = {}
            for few in chunks(request.topics or ()):
                requested.update({_topic_key(wanted): wanted for wanted in few})
                yield len(few)
            for wanted in requested.values():
                row = self._requested_topic(context, wanted, reachable, refusals)
                topics.append(row)
                yield ROW_UNITS + 2 * len(row.partitions)
        response = MetadataResponse(
            brokers=list(reachable.values()),
            cluster_id=self.cluster.cluster_id,
            controller_id=image.controller_id if image.controller_id in reachable else -1,
            topics=topics,
        )
        if request.include_topic_authorized_operations:
            for row in topics:
                if row.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                    row.topic_authorized_operations = TOPIC_OPERATIONS
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = CLUSTER_OPERATIONS
        return response

    def _requested_topic(
        self,
        context: RequestContext,
        wanted: MetadataRequestTopic,
        reachable: Mapping[int, MetadataResponseBroker],
        refusals: dict[str, ErrorCode],
    ) -> MetadataResponseTopic:
        image = self.cluster.image
        name = image.topic_name(wanted.name, wanted.topic_id)
        topic = image.topics.get(name) if name else None
        if topic is not None:
            return self._topic(context, topic, reachable)
        if not wanted.topic_id.is_zero:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id
            )
        if wanted.name is None:
            return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name="")
        try:
            validate_topic_name(wanted.name)
            error = refusals.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        except ApiError as refusal:
            error = refusal.code
        return MetadataResponseTopic(
            error_code=error, name=wanted.name, is_internal=wanted.name in INTERNAL_TOPICS
        )

    def _topic(
        self,
        context: RequestContext,
        topic: TopicImage,
        reachable: Mapping[int, MetadataResponseBroker],
    ) -> MetadataResponseTopic:
        rows = []
        for partition in topic.partitions.values():
            error = ErrorCode.NONE
            leader = partition.leader
            if leader not in reachable:
                has_listener_error = leader >= 0 and context.version >= 6
                error = (
                    ErrorCode.LISTENER_NOT_FOUND
                    if has_listener_error and leader in self.cluster.image.brokers
                    else ErrorCode.LEADER_NOT_AVAILABLE
                )
                leader = -1
            rows.append(
                MetadataResponsePartition(
                    error_code=error,
                    partition_index=partition.partition,
                    leader_id=leader,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=list(partition.replicas),
                    isr_nodes=list(partition.isr),
                    offline_replicas=list(partition.offline_replicas),
                )
            )
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=rows,
        )


def _topic_key(wanted: MetadataRequestTopic) -> str | Uuid | None:
    return wanted.name if wanted.topic_id.is_zero else wanted.topic_id


def _check_rows(request: MetadataRequest, version: int) -> Work[None]:
    """
    Raises:
        ApiError: INVALID_REQUEST, a row has an id, or no name, in a version that does not allow it.
    """
    for few in chunks(request.topics or ()):
        for wanted in few:
            if wanted.name is None:
                message = f"Topic name can not be null for version {version}"
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            if not wanted.topic_id.is_zero:
                message = f"Topic IDs are not supported in requests for version {version}"
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
        yield len(few)


def _requests_all_topics(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def refuse(request: MetadataRequest, error: ApiError, version: int) -> MetadataResponse:
    """The same error for every requested topic."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=error.code,
                name=wanted.name if version >= _FIRST_VERSION_WITH_IDS else wanted.name or "",
                topic_id=wanted.topic_id,
            )
            for wanted in request.topics or ()
        ]
    )
