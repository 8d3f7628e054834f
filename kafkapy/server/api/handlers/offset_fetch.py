"""OffsetFetch (key 9), versions 0-10.

Behaviour: returns committed offsets of one group, or of many from v8 on; -1 for a partition without
one. Version notes: null topics mean all (v2); `require_stable` (v7, KIP-447); v8 nests rows by
group (KIP-709); v9 has the member of a consumer group and its epoch (KIP-848); v10 topic ids. The
row of an unknown id has UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import (
    NO_OFFSET,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsResult,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handler_support import distinct
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Work, chunks, hash_units, run_now

_FIRST_VERSION_WITH_IDS: Final = 10

T = TypeVar("T")
P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)


def handle(
    groups: GroupService,
    metadata: MetadataCache,
    authorization: Authorization,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> Work[Outcome[OffsetFetchResponse]]:
    """Look up the offsets of each group, without waiting."""
    if context.version >= 8:
        rows = []
        for group in distinct(request.groups, lambda group: group.group_id):
            yield hash_units(group.group_id)
            image = metadata.image
            unknown: list[OffsetFetchRequestTopics] = []
            if context.version >= _FIRST_VERSION_WITH_IDS:
                unknown = yield from _set_topic_names(image, group)
            fetched = yield from _fetch(groups, authorization, context, group, request)
            row = yield from _group_row(group.group_id, fetched)
            if context.version >= _FIRST_VERSION_WITH_IDS:
                yield from _set_topic_ids(image, row, unknown)
            rows.append(row)
        return OffsetFetchResponse(groups=rows)
    topics = request.topics
    if context.version < 2 and topics is None:
        topics = []
    single_group = OffsetFetchRequestGroup(group_id=request.group_id, topics=_group_topics(topics))
    fetched = yield from _fetch(groups, authorization, context, single_group, request)
    return (yield from _single_group_response(topics, fetched, context.version))


def _set_topic_names(
    image: MetadataImage, group: OffsetFetchRequestGroup
) -> Work[list[OffsetFetchRequestTopics]]:
    """Set the names of a group's topics. Removes and returns the topics with unknown ids."""
    known, unknown = [], []
    for topic in group.topics or ():
        name = image.topic_name(None, topic.topic_id)
        if name is None:
            unknown.append(topic)
        else:
            topic.name = name
            known.append(topic)
        yield 1
    if unknown:
        group.topics = known
    return unknown


def _set_topic_ids(
    image: MetadataImage, row: OffsetFetchResponseGroup, unknown: list[OffsetFetchRequestTopics]
) -> Work[None]:
    """Set the ids of a response's topics, and add the `unknown` ones. As in Kafka, topics without
    an id are left out; they occur only in responses with all topics.
    """
    topics = []
    for topic in row.topics:
        found = image.topic(topic.name)
        if found is not None and not found.topic_id.is_zero:
            topic.topic_id = found.topic_id
            topics.append(topic)
        yield 1
    row.topics = topics
    for request_topic in () if row.error_code else unknown:
        row.topics.append((yield from _unknown_topic(request_topic)))


def _unknown_topic(request_topic: OffsetFetchRequestTopics) -> Work[OffsetFetchResponseTopics]:
    topic = OffsetFetchResponseTopics(topic_id=request_topic.topic_id, partitions=[])
    for indexes in chunks(list(dict.fromkeys(request_topic.partition_indexes))):
        topic.partitions += [
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in indexes
        ]
        yield 2 * len(indexes)
    yield ROW_UNITS
    return topic


def _group_topics(
    topics: list[OffsetFetchRequestTopic] | None,
) -> list[OffsetFetchRequestTopics] | None:
    """The topics in the form that they have in a group (v8 and later)."""
    if topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics
    ]


def _fetch(
    groups: GroupService,
    authorization: Authorization,
    context: RequestContext,
    group: OffsetFetchRequestGroup,
    request: OffsetFetchRequest,
) -> Work[FetchOffsetsResult]:
    yield ROW_UNITS
    group_id, topics = group.group_id, group.topics
    if not authorization.is_allowed(context, Operation.DESCRIBE, ResourceKind.GROUP, group_id):
        return FetchOffsetsResult(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    wanted: list[TopicPartition] | None = None
    if topics is not None:
        wanted = []
        for topic in topics:
            for indexes in chunks(list(dict.fromkeys(topic.partition_indexes))):
                wanted += [TopicPartition(topic.name, index) for index in indexes]
                yield len(indexes)
            yield 1
    result = FetchOffsetsResult()
    for few in [None] if wanted is None else [*chunks(wanted)] or [wanted]:
        stable = request.require_stable
        coordinator_request = FetchOffsets(
            group_id, few, stable, group.member_id, group.member_epoch
        )
        part: FetchOffsetsResult = groups.call_now(
            groups.coordinator.fetch_offsets, coordinator_request, lambda result: result
        )
        result.error = result.error or part.error
        result.offsets |= part.offsets
        yield ROW_UNITS + 2 * len(part.offsets)
    if authorization.authorizer is not None:
        yield from _hide_topics(authorization, context, result, is_requested=topics is not None)
    return result


def _hide_topics(
    authorization: Authorization,
    context: RequestContext,
    result: FetchOffsetsResult,
    is_requested: bool,
) -> Work[None]:
    """Hide topics that the caller may not describe: requested ones are refused, others left out."""
    for key in list(result.offsets):
        yield CHECK_UNITS
        if authorization.is_allowed(context, Operation.DESCRIBE, ResourceKind.TOPIC, key.topic):
            continue
        if is_requested:
            result.offsets[key] = FetchedOffset(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            del result.offsets[key]


def _topics(
    result: FetchOffsetsResult, row_class: type[P], to_topic: Callable[[str, list[P]], T]
) -> Work[list[T]]:
    """The rows of a response, by topic. 100,000 rows take a tenth of a second."""
    by_name: dict[str, list[P]] = {}
    topics: list[T] = []
    for few in chunks(list(result.offsets.items())):
        for (name, index), found in few:
            row = row_class(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=found.error,
            )
            rows = by_name.get(name)
            if rows is None:
                by_name[name] = rows = []
                topics.append(to_topic(name, rows))
            rows.append(row)
        yield 2 * len(few)
    return topics


def _topic(name: str, rows: list[OffsetFetchResponsePartitions]) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(name=name, partitions=rows)


def _old_topic(name: str, rows: list[OffsetFetchResponsePartition]) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(name=name, partitions=rows)


def _group_row(group_id: str, result: FetchOffsetsResult) -> Work[OffsetFetchResponseGroup]:
    topics = yield from _topics(result, OffsetFetchResponsePartitions, _topic)
    return OffsetFetchResponseGroup(group_id=group_id, error_code=result.error, topics=topics)


def _single_group_response(
    topics: list[OffsetFetchRequestTopic] | None, result: FetchOffsetsResult, version: int
) -> Work[OffsetFetchResponse]:
    if result.error and version < 2:
        # Below v2 the response has no top-level error code, so every row has the error.
        result.offsets = {}
        for t in topics or ():
            for indexes in chunks(t.partition_indexes):
                for index in indexes:
                    result.offsets[TopicPartition(t.name, index)] = FetchedOffset(
                        error=result.error
                    )
                yield len(indexes)
            yield 1
    response_topics = yield from _topics(result, OffsetFetchResponsePartition, _old_topic)
    return OffsetFetchResponse(error_code=result.error, topics=response_topics)


def refuse(request: OffsetFetchRequest, error: ApiError, version: int) -> OffsetFetchResponse:
    """The error: for each group from v8 on, top-level in v2-v7, and for each partition before."""
    failed = FetchOffsetsResult(ErrorCode(error.code))
    if version >= 8:
        groups = [run_now(_group_row(g.group_id, failed)) for g in request.groups]
        return OffsetFetchResponse(groups=groups)
    return run_now(_single_group_response(request.topics or [], failed, version))
