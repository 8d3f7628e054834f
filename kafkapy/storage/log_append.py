"""Parameters, result (Kafka's `LogAppendInfo`) and rules of an append."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import MAGIC, BatchHeader, Buffer, iter_headers
from kafkapy.record.batch_rules import BatchRules
from kafkapy.record.codec import Codec, codec_of_topic
from kafkapy.record.control import EndTransactionMarker, read_end_transaction_marker
from kafkapy.record.records import batch_records
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.producer_state import ProducerBatch

logger = logging.getLogger("kafka.log.ProducerStateManager")

LEADER_EPOCH_MAX: Final = 2**31 - 1
"""The largest possible leader epoch."""


class AppendOrigin(Enum):
    """The origin of an append: coordinators and leaders are trusted more than clients."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


@dataclass(slots=True)
class LogAppendInfo:
    """The appended records. Offsets are those of the records in the log; sizes in bytes.

    `log_append_time` is -1 when the topic's time is CreateTime. For a duplicate, which is not
    appended again, the offsets are those of the first append and `log_append_time` is its batch's
    timestamp.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    leader_epoch: int
    record_count: int
    size_bytes: int
    duplicate: bool = False


class UnexpectedAppendOffset(ApiError):
    """A follower received records from before its log end offset. The log is unchanged.

    They end at `next_offset` - 1 or later. If that is beyond the log end offset, a batch of the
    leader spans the log's end, and the follower truncates to `first_offset`.
    """

    def __init__(self, first_offset: int, next_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Records from offset {first_offset} do not follow the log end offset {log_end_offset}",
        )
        self.first_offset = first_offset
        self.next_offset = next_offset


def rules_of(config: LogConfig) -> BatchRules:
    """The rules for `record.validation` of a batch, from the log's config."""
    codec = codec_of_topic(config.compression_type)
    levels: Final = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return BatchRules(
        config.max_message_bytes,
        codec,
        levels.get(codec) if codec is not None else None,
        config.log_append_time,
        config.message_timestamp_before_max_ms,
        config.message_timestamp_after_max_ms,
        config.compact,
    )


def marker_of(header: BatchHeader, batch: Buffer, position: int = 0) -> EndTransactionMarker | None:
    """The transaction marker in a control batch; None for other batches.

    Raises:
        ApiError: INVALID_RECORD, CORRUPT_MESSAGE for a malformed one.
    """
    if not header.is_control or header.record_count <= 0:
        return None
    record = next(batch_records(batch, header, position))
    return read_end_transaction_marker(record.key, record.value)


def appended_marker(
    header: BatchHeader, batch: Buffer, position: int = 0
) -> EndTransactionMarker | None:
    """The transaction marker in a batch that is in this log or the leader's. A malformed marker is
    logged and ends no transaction: raising would fail the replica, or the whole log directory.
    """
    try:
        return marker_of(header, batch, position)
    except ApiError as error:
        logger.error(
            "Skipped the marker at offset %d of producer %d: %s",
            header.base_offset,
            header.producer_id,
            error.message,
        )
        return None


def fetched_batches(
    records: Buffer, log_end_offset: int, leader_epoch: int = LEADER_EPOCH_MAX
) -> list[tuple[int, BatchHeader]]:
    """(position, header) of the whole batches from a leader, without an incomplete last one.

    They end before the first batch of a later epoch than the leader's. A leader sends from its
    file: if it is replaced meanwhile, the rest may be batches of the next leader, which need not
    continue the batches before them (KAFKA-18723).

    Raises:
        ApiError: CORRUPT_MESSAGE for a bad CRC, offsets that go back, a count beyond them, or a
            first batch of a later epoch.
        UnexpectedAppendOffset: they begin before `log_end_offset`.
    """
    batches: list[tuple[int, BatchHeader]] = []
    expected = log_end_offset
    for position, header in iter_headers(records):
        if header.partition_leader_epoch > leader_epoch:  # -1 in old formats
            if batches:
                break
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"A batch of epoch {header.partition_leader_epoch} came from the leader of epoch"
                f" {leader_epoch}",
            )
        validate_crc(records, position, header)
        # The header of a compressed set of an old format has only its last offset.
        first = header.last_offset
        if header.magic == MAGIC:
            first = header.base_offset
            # Compaction removes records from a batch, and keeps its offset range.
            if not 0 <= header.record_count <= header.last_offset_delta + 1 > 0:
                raise ApiError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"The batch at offset {first} claims {header.record_count} records and the"
                    f" last offset delta {header.last_offset_delta}",
                )
        if first < expected:
            if expected == log_end_offset:
                raise UnexpectedAppendOffset(first, header.next_offset, log_end_offset)
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"Offset {first} was sent after offset {expected - 1}"
            )
        expected = header.next_offset
        batches.append((position, header))
    return batches


def too_large(topic_partition: TopicPartition, size: int, config: LogConfig) -> ApiError:
    """The error for batches that are larger than a segment."""
    return ApiError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"{size} bytes of batches for {topic_partition} exceed segment.bytes "
        f"{config.segment_bytes}",
    )


def duplicate_info(
    batch: ProducerBatch, log_start_offset: int, leader_epoch: int, header: BatchHeader, size: int
) -> LogAppendInfo:
    """The result for a batch that is in the log already: the offsets of its first append."""
    return LogAppendInfo(
        batch.first_offset, batch.last_offset, batch.timestamp, batch.timestamp,
        log_start_offset, leader_epoch, header.record_count, size, duplicate=True,
    )  # fmt: skip
