"""A log's rules for the batches appended to it, and the result of checking one."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Pause, no_pause
from kafkapy.record.batch_header import NO_TIMESTAMP, BatchHeader, Buffer
from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX, Codec

NO_LIMIT: Final = 2**63 - 1

RECORD_BYTES_MIN: Final = 7
"""The smallest size of a v2 record: one byte each for its length, attributes, two deltas, key,
value and headers."""

COMPRESSION_RATIO_MAX: Final = (1, 1032, 22, 255, 32768, 0, 0, 0)
"""The largest size of one compressed byte after decompression, by codec id: a deflate match of 258
bytes in 2 bits, a snappy copy of 64 in 3 bytes, an lz4 length byte of 255, a zstd block of 128 KiB
in 4."""

BUDGET_BYTES_MIN: Final = 64 << 20
BUDGET_PER_BYTE: Final = 64
RECORD_COST_BYTES: Final = 32
"""Each record counts as this many decompressed bytes, because to read it takes at least as long as
to decompress them."""

RECORDS_MAX: Final = DECOMPRESSED_BYTES_MAX // RECORD_BYTES_MIN
"""The limit of records in a batch: no reader decompresses more."""

COMPACTED_RECORDS_MAX: Final = 1 << 18
"""The limit for a compacted topic. The cleaner holds the records of a batch as objects, about 390
bytes each: 100 MB. A batch of 1 MB may have 1.2 million."""


class BatchRules(NamedTuple):
    """A log's rules for the batches appended to it. The defaults are Kafka's."""

    max_message_bytes: int = 1_048_588
    codec: Codec | None = None  # None: compression.type=producer
    level: int | None = None
    log_append_time: bool = False  # message.timestamp.type
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = NO_LIMIT
    compacted: bool = False  # cleanup.policy has compact: every record needs a key


class PreparedBatch(NamedTuple):
    """A batch that is ready to be appended, except for base offset and leader epoch.

    `records` is the whole batch, header first: the received bytes when nothing had to change.
    `log_append_time` is -1 when the topic's time is CreateTime.
    """

    header: BatchHeader
    records: Buffer
    log_append_time: int


class InvalidRecords(ApiError):
    """A batch with some invalid records; `record_errors`: [(index in the batch, message)]."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class ByteBudget:
    """The bytes to which the batches of one request may still decompress, in total.

    A request of 1 MB may contain hundreds of batches that decompress to 64 MB each. They would
    occupy the one thread that prepares batches for minutes. The work calls `pause` between its
    short steps.
    """

    __slots__ = ("_remaining_bytes", "pause")

    def __init__(self, sent_bytes: int, pause: Pause = no_pause) -> None:
        """`sent_bytes` is the size of all records of the request."""
        self.pause = pause
        self._remaining_bytes = max(BUDGET_BYTES_MIN, sent_bytes * BUDGET_PER_BYTE)

    def check(self) -> None:
        """Check that the budget is not used up.

        Raises:
            ApiError: MESSAGE_TOO_LARGE if it is. Producers split a batch after this error.
        """
        if self._remaining_bytes < 0:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE, "The batches of the request unfold to too many bytes"
            )

    def spend(self, size: int, records: int = 0) -> None:
        """Count decompressed bytes, and records that were read one by one."""
        self._remaining_bytes -= size + records * RECORD_COST_BYTES


class NeedsThread(Exception):
    """Another thread must prepare the batch, because it would block the event loop."""

    def __init__(self, rules: BatchRules, now_ms: int, produce_version: int) -> None:
        super().__init__()
        self.rules = rules
        self.now_ms = now_ms
        self.produce_version = produce_version


def check_timestamp(timestamp: int, rules: BatchRules, now_ms: int) -> None:
    """Raise ApiError INVALID_TIMESTAMP for a time outside the topic's window (KIP-937)."""
    if timestamp == NO_TIMESTAMP:
        return
    age = now_ms - timestamp
    if age > rules.timestamp_before_max_ms or -age > rules.timestamp_after_max_ms:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"Timestamp {timestamp} is out of range. The timestamp should be within "
            f"[{now_ms - rules.timestamp_before_max_ms}, {now_ms + rules.timestamp_after_max_ms}]",
        )


def too_large(size: int, rules: BatchRules) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch is {size} bytes, larger than max.message.bytes "
        f"{rules.max_message_bytes}",
    )


def too_many_for_cleaner(count: int) -> ApiError:
    """MESSAGE_TOO_LARGE, after which the Java producer splits a batch."""
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch has {count} records. A compacted topic takes at most "
        f"{COMPACTED_RECORDS_MAX} in a batch",
    )


def too_many_records(count: int, payload_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_RECORD, f"{payload_bytes} bytes of records cannot hold {count} records"
    )
