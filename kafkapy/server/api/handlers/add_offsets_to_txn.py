"""AddOffsetsToTxn (key 25), versions 0-4.

Behaviour: the group's partition of `__consumer_offsets` becomes part of the transaction. A missing
topic is created first, and the response is COORDINATOR_NOT_AVAILABLE. Otherwise, a partition that
is not in the metadata when the transaction ends would count as deleted, and get no marker. Version
notes: below v2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import AddPartitions, PartitionsResult
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkapy.server.admin.auto_creator import CREATION_WAIT_MS, AutoCreator
from kafkapy.server.api.handler_support import transactional_error
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.outcomes import Outcome, ResponseCoroutine

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def handle(
    transactions: TransactionService,
    groups: GroupService,
    metadata: MetadataCache,
    creator: AutoCreator,
    context: RequestContext,
    request: AddOffsetsToTxnRequest,
) -> Outcome[AddOffsetsToTxnResponse] | ResponseCoroutine[AddOffsetsToTxnResponse]:
    """Add the group's partition."""
    partition = TopicPartition(
        GROUP_METADATA_TOPIC, groups.coordinator.partition_for(request.group_id)
    )

    async def create() -> AddOffsetsToTxnResponse:
        await creator.create([GROUP_METADATA_TOPIC], CREATION_WAIT_MS)
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    if metadata.image.partition(*partition) is None:
        return create()
    coordinator_request = AddPartitions(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        [partition],
    )

    def response(result: PartitionsResult) -> AddOffsetsToTxnResponse:
        code = transactional_error(
            result.error, context.version, _FIRST_VERSION_WITH_PRODUCER_FENCED
        )
        return AddOffsetsToTxnResponse(error_code=code)

    return transactions.call(transactions.coordinator.add_partitions, coordinator_request, response)


def refuse(
    request: AddOffsetsToTxnRequest, error: ApiError, version: int
) -> AddOffsetsToTxnResponse:
    """A response with the error code."""
    return AddOffsetsToTxnResponse(error_code=ErrorCode(error.code))
