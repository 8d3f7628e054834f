"""Rules of a produce append. Hot file.

The handler and the fast path both append here. They only decode requests and encode responses, so
both paths have the same rules: which requests are refused as a whole, which wait for a
transaction's coordinator, which rows are refused, the metrics, and the handling of unexpected
exceptions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import INTERNAL_TOPICS, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.record.batch_header import transactional_header
from kafkapy.record.batch_rules import NeedsThread
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.server.coordinators.transaction_verifier import PendingWrite
from kafkapy.server.requests.outcomes import Pending
from kafkapy.storage.log_append import AppendOrigin

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.common.uuid import Uuid
    from kafkapy.protocol.messages.produce import ProduceRequest
    from kafkapy.record.long_preparation import PreparationResult
    from kafkapy.replication.partition import Partition
    from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.storage.log_append import LogAppendInfo

logger = logging.getLogger("kafka.server.ReplicaManager")

R = TypeVar("R")

_FIRST_VERSION_THAT_ADDS_PARTITIONS: Final = 12
_ADMIN_CLIENT_ID: Final = "__admin_client"
APPENDS_PER_SLICE: Final = 8
"""The number of rows that are appended in one slice. The conversion, check or compression of a
brief row takes up to a millisecond."""
_NONE_UNVERIFIED: Final[list[PendingWrite]] = []


def copy_records(request: ProduceRequest) -> int:
    """Copy the records, whose memory the next read of any connection may overwrite. Returns their
    size.
    """
    size = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is not None:
                size += len(records)
                if not isinstance(records, bytes):
                    data.records = bytes(records)
    return size


def writing(
    topic: str, index: int, records: memoryview | bytes | None, version: int
) -> PendingWrite | None:
    """The partition and producer of a transactional batch; None for others."""
    header = transactional_header(records or b"")
    if header is None:
        return None
    return PendingWrite(
        TopicPartition(topic, index),
        Producer(header.producer_id, header.producer_epoch),
        header.base_sequence,
        version >= _FIRST_VERSION_THAT_ADDS_PARTITIONS,
    )


def unverified(
    verifier: TransactionVerifier,
    acks: int,
    transactional_id: str | None,
    writes: Sequence[PendingWrite],
) -> list[PendingWrite]:
    """The transactional batches of a request whose partitions the transaction's coordinator must
    verify, or add, before the append.

    Raises:
        ApiError: the whole request is refused.
    """
    if transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if any(each.producer != writes[0].producer for each in writes):
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)  # the coordinator can verify one
    return verifier.writes_to_verify(writes) if acks != 0 else _NONE_UNVERIFIED


def append(
    replicas: ReplicaManager,
    metrics: Metrics,
    topic: str | None,
    index: int,
    records: memoryview | bytes | None,
    acks: int,
    version: int,
    client_id: str | None,
    ahead: PreparationResult | None = None,
    topic_id: Uuid | None = None,
) -> tuple[LogAppendInfo, Partition]:
    """Append one row, and count it. `topic_id` is that of the request, if its version has ids.
    `topic` is None for an unknown id.

    Raises:
        NeedsThread: nothing was done. Another thread must prepare the records (`ahead`). ApiError:
        the row's error; UNKNOWN_SERVER_ERROR after an unexpected exception, whether or not the
        records are in the log.
    """
    if topic is None:
        refusal = ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        if topic_id is None or topic_id.is_zero:
            raise refusal
        raise replicas.refuse(topic_id, index, records or b"", refusal)
    if topic in INTERNAL_TOPICS and client_id != _ADMIN_CLIENT_ID:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}"
        )
    if records is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "The request has no records for this partition")
    try:
        appended = replicas.append(
            topic, index, records, acks, version, AppendOrigin.CLIENT, True, ahead, topic_id
        )
    except (ApiError, NeedsThread):
        raise
    except Exception as fault:
        # As in Kafka, the other rows of the request keep their own outcome.
        logger.exception("Error processing append operation on partition %s-%d", topic, index)
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from fault
    info = appended[0]
    if not info.duplicate:
        metrics.count_append(topic, info.record_count, len(records))
    return appended


def wait_of(info: LogAppendInfo, partition: Partition) -> ProduceWait | None:
    """The wait of an append with acks=all, if it must wait."""
    if partition.log.high_watermark > info.last_offset:
        return None
    return ProduceWait(partition, info.last_offset + 1)


def respond_after_waits(
    replicas: ReplicaManager,
    clock: Clock,
    timeout_ms: int,
    waits: list[ProduceWait],
    respond: Callable[[], R],
) -> Pending[R]:
    """The response that `respond` creates after all of `waits`, or after the timeout."""
    pending: Pending[R] = Pending()
    purgatory = replicas.produce_purgatory
    operation = DelayedProduce(
        clock.monotonic_ms() + max(0, timeout_ms), waits, lambda: pending.complete(respond())
    )
    pending.on_abandon = lambda: purgatory.cancel(operation)
    purgatory.try_complete_else_watch(operation, [w.partition.topic_partition for w in waits])
    return pending
