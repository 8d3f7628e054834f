"""DescribeShareGroupOffsets (key 90), versions 0-1 (KIP-932).

Behaviour: start offsets come from the share coordinators, end offsets from the partition leaders.
Version notes: v1 has the lag (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handler_support import distinct
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_offsets import ShareOffset, ShareOffsets
from kafkapy.server.requests.turns import ROW_UNITS, Pace, SliceScheduler, hash_units


@dataclass(frozen=True)
class Handler:
    """Describes the offsets of share groups."""

    offsets: ShareOffsets
    metadata: MetadataCache
    features: ClusterFeatures
    authorization: Authorization
    slices: SliceScheduler

    async def handle(
        self, context: RequestContext, request: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        """Describe each requested group."""
        if not self.features.has_share_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        rows, pace = [], self.slices.pace()
        for group in distinct(request.groups, lambda each: each.group_id):
            await pace.charge(2 * ROW_UNITS + hash_units(group.group_id))
            try:
                rows.append(await self._group(context, group, pace))
            except ApiError as refusal:
                rows.append(_refused_group(group, refusal))
        return DescribeShareGroupOffsetsResponse(groups=rows)

    async def _group(
        self, context: RequestContext, group: DescribeShareGroupOffsetsRequestGroup, pace: Pace
    ) -> DescribeShareGroupOffsetsResponseGroup:
        self.authorization.require(context, Operation.DESCRIBE, ResourceKind.GROUP, group.group_id)
        share_partitions = await self._share_partitions(group.group_id)
        image = self.metadata.image
        topics: dict[str, DescribeShareGroupOffsetsResponseTopic] = {}
        wanted: dict[TopicIdPartition, str] = {}
        for name, partition in self._requested_partitions(group, share_partitions):
            await pace.charge(ROW_UNITS)
            if not self.authorization.is_allowed(
                context, Operation.DESCRIBE, ResourceKind.TOPIC, name
            ):
                if group.topics is None:
                    continue
                row = _row(partition.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                # An id would reveal that the topic exists.
                partition = partition._replace(topic_id=ZERO_UUID)
            elif name not in image.topics:
                row = _row(partition.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif partition not in share_partitions:
                row = _row(partition.partition)
            else:
                wanted[partition] = name
                continue
            _topic(topics, name, partition).partitions.append(row)
        found = await self.offsets.describe(group.group_id, list(wanted))
        for partition, name in wanted.items():
            row = _offset_row(partition.partition, found[partition])
            _topic(topics, name, partition).partitions.append(row)
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id, topics=list(topics.values())
        )

    async def _share_partitions(self, group_id: str) -> set[TopicIdPartition]:
        """The share partitions of a group; as in Kafka, an unknown group has none."""
        try:
            return await self.offsets.share_partitions(group_id)
        except ApiError as refusal:
            if refusal.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return set()
            raise

    def _requested_partitions(
        self, group: DescribeShareGroupOffsetsRequestGroup, share_partitions: set[TopicIdPartition]
    ) -> Iterator[tuple[str, TopicIdPartition]]:
        """The requested partitions, or all known ones, with the names of their topics."""
        image = self.metadata.image
        if group.topics is None:
            names = image.topic_names_by_id
            yield from sorted(
                (names[p.topic_id], p) for p in share_partitions if p.topic_id in names
            )
        for topic in group.topics or ():
            known_topic = image.topics.get(topic.topic_name)
            topic_id = ZERO_UUID if known_topic is None else known_topic.topic_id
            for index in topic.partitions:
                yield topic.topic_name, TopicIdPartition(topic_id, index)


def _topic(
    topics: dict[str, DescribeShareGroupOffsetsResponseTopic],
    name: str,
    partition: TopicIdPartition,
) -> DescribeShareGroupOffsetsResponseTopic:
    return topics.setdefault(
        name,
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=name, topic_id=partition.topic_id, partitions=[]
        ),
    )


def _row(
    index: int, error: ErrorCode = ErrorCode.NONE
) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=-1, error_code=error
    )


def _offset_row(index: int, found: ShareOffset) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=found.state.start_offset,
        leader_epoch=found.state.leader_epoch,
        lag=found.lag,
        error_code=found.state.error,
        error_message=found.state.message,
    )


def _refused_group(
    group: DescribeShareGroupOffsetsRequestGroup, error: ApiError
) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group.group_id, error_code=error.code, error_message=error.message, topics=[]
    )


def refuse(
    request: DescribeShareGroupOffsetsRequest, error: ApiError, version: int
) -> DescribeShareGroupOffsetsResponse:
    """The same error for every group."""
    return DescribeShareGroupOffsetsResponse(
        groups=[_refused_group(group, error) for group in request.groups]
    )
