"""Reads the records of an internal topic for a load. Unreadable ones are logged and skipped.

Kafka's loaders (`GroupMetadataManager.doLoadGroupsAndOffsets`, `TransactionStateManager`) stop at
the first bad batch, and serve the partition without the records after it: offsets go back,
transactions are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from logging import Logger

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import MAGIC, BatchHeader, Buffer, iter_headers
from kafkapy.record.records import Record, batch_records


def replayed_records(
    log: Logger, partition: TopicPartition, records: Buffer
) -> Iterator[tuple[BatchHeader, Record]]:
    """The records of the whole batches in `records`, each with its batch's header.

    A batch that is unreadable, wholly or in part, is logged with one line at level ERROR, and its
    readable records are returned; none if its CRC is wrong.

    Raises:
        ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
    """
    for position, header in iter_headers(records):
        num_read = 0
        first_error: ApiError | None = None

        def skipped(error: ApiError) -> None:
            nonlocal first_error
            first_error = first_error or error

        try:
            validate_crc(records, position, header)
            for record in batch_records(records, header, position, skipped=skipped):
                num_read += 1
                yield header, record
        except ApiError as error:
            skipped(error)
        if first_error is not None:
            total = header.record_count if header.magic == MAGIC else num_read + 1
            log.error(
                "Skipped %d of the %d records in the batch at offset %d of %s: %s",
                total - num_read,
                total,
                header.base_offset,
                partition,
                first_error.message,
            )
