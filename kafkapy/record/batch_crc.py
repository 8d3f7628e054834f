"""Checks a batch against the CRC in its header. Readers of segments need no other validation."""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import ATTRIBUTES_OFFSET, MAGIC, BatchHeader, Buffer
from kafkapy.record.checksum import crc32c


def validate_crc(buf: Buffer, position: int, header: BatchHeader) -> None:
    """Check the batch or legacy message at `position` against the CRC in its header.

    Raises:
        ApiError: CORRUPT_MESSAGE when it differs, or the batch is cut off.
    """
    if position + header.size > len(buf):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"The batch ends {header.size} bytes on: cut off")
    if header.magic != MAGIC:
        from kafkapy.record.legacy import validate_message_crc  # rare, as in `records`

        validate_message_crc(buf, header, position)
        return
    batch = memoryview(buf)[position : position + header.size]
    if crc32c(batch[ATTRIBUTES_OFFSET:]) != header.crc:
        raise crc_error(header, batch)


def crc_error(header: BatchHeader, batch: Buffer) -> ApiError:
    """The error for a v2 batch whose CRC differs, in Kafka's words."""
    computed = crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:])
    return ApiError(
        ErrorCode.CORRUPT_MESSAGE,
        f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})",
    )
