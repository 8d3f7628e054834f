"""DeleteRecords (key 21), versions 0-2.

Behaviour: raises the log start offset, then waits until the logs of all live replicas begin there,
and returns their lowest log start offset. The next retention check deletes segments below it.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import INTERNAL_TOPICS
from kafkapy.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafkapy.replication.delayed_delete_records import (
    INVALID_LOW_WATERMARK,
    DelayedDeleteRecords,
    DeleteRecordsWait,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import ROW_UNITS, Work


def handle(
    replicas: ReplicaManager, clock: Clock, context: RequestContext, request: DeleteRecordsRequest
) -> Work[Outcome[DeleteRecordsResponse]]:
    """Delete the records of each partition before the given offset. The response waits for the
    replicas.
    """
    waits: list[tuple[DeleteRecordsWait, DeleteRecordsPartitionResult]] = []
    topics = []
    for topic in request.topics:
        rows = []
        for wanted in topic.partitions:
            row = DeleteRecordsPartitionResult(
                partition_index=wanted.partition_index, low_watermark=INVALID_LOW_WATERMARK
            )
            rows.append(row)
            try:
                if topic.name in INTERNAL_TOPICS:
                    raise ApiError(
                        ErrorCode.INVALID_TOPIC_EXCEPTION,
                        f"Cannot delete records of internal topic {topic.name}",
                    )
                partition = replicas.get(topic.name, wanted.partition_index)
                waits.append(
                    (DeleteRecordsWait(partition, partition.delete_records(wanted.offset)), row)
                )
            except ApiError as error:
                row.error_code = error.code
            except LogDirFailure as failure:
                replicas.log_dir_failed(failure)
                row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            yield ROW_UNITS
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
        yield 1
    return _wait(replicas, clock, request.timeout_ms, DeleteRecordsResponse(topics=topics), waits)


def _wait(
    replicas: ReplicaManager,
    clock: Clock,
    timeout_ms: int,
    response: DeleteRecordsResponse,
    waits: list[tuple[DeleteRecordsWait, DeleteRecordsPartitionResult]],
) -> Outcome[DeleteRecordsResponse]:
    pending: Pending[DeleteRecordsResponse] = Pending()

    def respond() -> None:
        for wait, row in waits:
            row.error_code = wait.error
            row.low_watermark = wait.low_watermark
        pending.complete(response)

    operation = DelayedDeleteRecords(
        clock.monotonic_ms() + max(0, timeout_ms), [wait for wait, _ in waits], respond
    )
    purgatory = replicas.delete_records_purgatory
    keys = [wait.partition.topic_partition for wait, _ in waits]
    if purgatory.try_complete_else_watch(operation, keys):
        return response
    pending.on_abandon = lambda: purgatory.cancel(operation)
    return pending


def refuse(request: DeleteRecordsRequest, error: ApiError, version: int) -> DeleteRecordsResponse:
    """The same error for every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=wanted.partition_index,
                        low_watermark=INVALID_LOW_WATERMARK,
                        error_code=error.code,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
