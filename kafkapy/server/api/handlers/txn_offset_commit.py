"""TxnOffsetCommit (key 28), versions 0-6.

Behaviour: the offsets are stored in `__consumer_offsets` in the producer's transaction, and take
effect with its marker. As for records, the transaction's coordinator must verify first that the
partition is part of it, or add it (KIP-890). Version notes: v3 has the group's member and
generation (KIP-447); below v4 TRANSACTION_ABORTABLE is INVALID_TXN_STATE; from v5 on the partition
is added, with transaction version 2; v6 has topic ids, which `topic_ids` resolves, and member
epochs (KIP-1319). Below v2 COORDINATOR_LOAD_IN_PROGRESS is COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import CommitOffsets, CommitOffsetsResult, OffsetToCommit
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.transaction_verifier import PendingWrite, TransactionVerifier
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import ROW_UNITS, Work, as_work

_FIRST_VERSION_WITH_LOAD_IN_PROGRESS = 2
_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS_PARTITIONS = 5
_FIRST_VERSION_WITH_EPOCHS = 6


def handle(
    groups: GroupService,
    metadata: MetadataCache,
    verifier: TransactionVerifier,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
) -> Work[Outcome[TxnOffsetCommitResponse]]:
    """Commit the offsets of the partitions that exist."""
    producer = Producer(request.producer_id, request.producer_epoch)
    index = groups.coordinator.partition_for(request.group_id)
    partition = TopicPartition(GROUP_METADATA_TOPIC, index)
    adds = context.version >= _FIRST_VERSION_THAT_ADDS_PARTITIONS
    unverified = verifier.writes_to_verify([PendingWrite(partition, producer, adds=adds)])
    if not unverified:
        return (yield from _commit(groups, metadata, context, request, producer))
    pending: Pending[TxnOffsetCommitResponse] = Pending()

    def on_verified(errors: dict[TopicPartition, ErrorCode]) -> None:
        if partition in errors:
            code = _convert_verification_error(errors[partition], context.version)
            pending.complete(refuse(request, ApiError(code), context.version))
            return
        pending.complete_with(_commit(groups, metadata, context, request, producer))

    verifier.verify(request.transactional_id, unverified, on_verified)
    return (yield from as_work(pending.response)) if pending.done else pending


def _convert_verification_error(error: ErrorCode, version: int) -> ErrorCode:
    """The verification error, converted to one of TxnOffsetCommit. After COORDINATOR_NOT_AVAILABLE
    the producer looks up the group's coordinator again, and retries.
    """
    if error is ErrorCode.NOT_ENOUGH_REPLICAS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_old = version < _FIRST_VERSION_WITH_TRANSACTION_ABORTABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and is_old:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _commit(
    groups: GroupService,
    metadata: MetadataCache,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    producer: Producer,
) -> Work[Outcome[TxnOffsetCommitResponse]]:
    image = metadata.image
    offsets = {}
    for topic in request.topics:
        for p in topic.partitions:
            if image.partition(topic.name, p.partition_index) is not None:
                offsets[TopicPartition(topic.name, p.partition_index)] = OffsetToCommit(
                    p.committed_offset, p.committed_leader_epoch, p.committed_metadata, -1
                )
            yield ROW_UNITS // 2
        yield 1
    if not offsets:
        return (yield from _response(request, {}, context.version))
    commit = CommitOffsets(
        group_id=request.group_id,
        offsets=offsets,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        producer=producer,
        may_have_member_epoch=context.version >= _FIRST_VERSION_WITH_EPOCHS,
    )

    def response(result: CommitOffsetsResult) -> Work[TxnOffsetCommitResponse]:
        return _response(request, result.errors, context.version)

    outcome = groups.call(groups.coordinator.commit_offsets, commit, response)
    return (yield from as_work(outcome))


def _response(
    request: TxnOffsetCommitRequest, errors: dict[TopicPartition, ErrorCode], version: int
) -> Work[TxnOffsetCommitResponse]:
    topics = []
    for topic in request.topics:
        rows = []
        for p in topic.partitions:
            key = TopicPartition(topic.name, p.partition_index)
            error = errors.get(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            error = _error_for_version(error, version)
            rows.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=p.partition_index, error_code=error
                )
            )
            yield 2
        topics.append(
            TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
        yield 2
    return TxnOffsetCommitResponse(topics=topics)


def _error_for_version(error: ErrorCode, version: int) -> ErrorCode:
    is_old = version < _FIRST_VERSION_WITH_LOAD_IN_PROGRESS
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and is_old:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def refuse(
    request: TxnOffsetCommitRequest, error: ApiError, version: int
) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    code = _error_for_version(ErrorCode(error.code), version)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=code
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
