"""Encodes rows of columns to v2 batches, with no Python object per record.

The reverse of `columns`. A compiled kernel writes the records into the buffer from which the batch
is sent, behind room for the header. The buffer grows up to the allowed size of a batch. Python
writes the header and the CRC, and compresses, because these are per batch, not per row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkapy.record.batch_header import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
)
from kafkapy.record.binary_columns import BinaryColumn, HeaderColumns
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.ready_batch import ReadyBatch
from kafkapy.record.row_kernels import encode_rows

INITIAL_BUFFER_BYTES: Final = 16 << 10
"""The initial size of a batch's buffer, which grows. It is small, because many partitions have few
rows."""


_NO_BYTES: Final = np.empty(0, np.uint8)
_NO_COLUMN: Final = BinaryColumn(np.zeros(1, np.int32), _NO_BYTES, _NO_BYTES)
_NO_HEADERS: Final = HeaderColumns(np.empty(0, np.int32), _NO_COLUMN, _NO_COLUMN)


class RowTooLarge(Exception):
    """A row is too large for any batch; `size` is its size in bytes as a record."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a record of {size} bytes")
        self.size = size


class RowColumns(NamedTuple):
    """Keys, values and headers of rows, in order. If `headers` is None, no row has headers."""

    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None


class OpenBatch:
    """A batch that accepts rows until it is full.

    It is full at `limit` bytes; a single row may have up to `max_bytes`. `count` is the number of
    its records, `size` its bytes before compression.
    """

    __slots__ = ("_base_timestamp", "_buffer", "_limit", "_max_bytes", "_max_timestamp", "count",
                 "size")  # fmt: skip

    def __init__(self, limit: int, max_bytes: int) -> None:
        self.count = 0
        self.size = HEADER_SIZE
        self._limit = limit
        self._max_bytes = max_bytes
        self._buffer = np.empty(min(INITIAL_BUFFER_BYTES, limit), np.uint8)
        self._base_timestamp = self._max_timestamp = 0

    def add(self, columns: RowColumns, rows: NDArray[np.int32], timestamp_ms: int) -> int:
        """Add rows (indices into the columns) until the batch is full. Returns the number added.

        Raises:
            RowTooLarge: the first row that was not added is too large for any batch.
        """
        if self.count == 0:
            self._base_timestamp = timestamp_ms
        delta = timestamp_ms - self._base_timestamp
        headers = columns.headers or _NO_HEADERS
        arrays = (*columns.keys, *columns.values, headers.offsets, *headers.keys, *headers.values)
        taken = 0
        while True:
            done, self.size, wanted = encode_rows(
                rows[taken:], *arrays, delta, self._buffer, self.size, self.count,
                len(self._buffer),
            )  # fmt: skip
            taken += done
            self.count += done
            if done:
                self._max_timestamp = max(self._max_timestamp, timestamp_ms)
            if wanted == 0 or not self._grow(wanted):
                return taken

    def _grow(self, wanted: int) -> bool:
        """Make room for `wanted` more bytes. Returns False if the batch is full."""
        needed = self.size + wanted
        if self.count == 0 and needed > self._limit:
            if needed > self._max_bytes:
                raise RowTooLarge(wanted)
            self._limit = needed
        if needed > self._limit:
            return False
        larger = np.empty(min(self._limit, max(2 * len(self._buffer), needed)), np.uint8)
        larger[: self.size] = self._buffer[: self.size]
        self._buffer = larger
        return True

    def close(self, codec: Codec, level: int | None = None) -> ReadyBatch:
        """The batch, of at least one record, without producer and CRC: `set_producer_state` sets
        both.
        """
        batch: ReadyBatch = self._buffer.data[: self.size]
        if codec is not Codec.NONE:
            payload = compress(codec, self._buffer.data[HEADER_SIZE : self.size], level)
            batch = bytearray(HEADER_SIZE + len(payload))
            batch[HEADER_SIZE:] = payload
        header = BatchHeader(
            0, len(batch) - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, codec, self.count - 1,
            self._base_timestamp, self._max_timestamp,
            NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, self.count,
        )  # fmt: skip
        HEADER.pack_into(batch, 0, *header)
        return batch


def null_column(rows: int) -> BinaryColumn:
    """A column of nulls."""
    return BinaryColumn(np.zeros(rows + 1, np.int32), _NO_BYTES, np.zeros(-(-rows // 8), np.uint8))
