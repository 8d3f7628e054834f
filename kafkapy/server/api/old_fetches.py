"""Responses to old versions of Fetch, which have older record formats and error codes.

| version | |
|---|---|
| 0-1 | messages of format v0 |
| 2-3 | messages of format v1 |
| 0-5 | NOT_LEADER_OR_FOLLOWER for KAFKA_STORAGE_ERROR: clients do not retry unknown errors |
| 0-9 | topics that the broker compresses with zstd are refused (KIP-110) |

Records are converted in another thread, as in `KafkaApis.handleFetchRequest`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.system import GilPause
from kafkapy.record.batch_header import LOG_OVERHEAD
from kafkapy.record.down_conversion import down_convert
from kafkapy.replication.fetch_session import FetchResult
from kafkapy.server.requests.turns import Work, run_in_thread
from kafkapy.storage.disk_errors import disk_error
from kafkapy.storage.file_records import RegionInvalidated

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition
    from kafkapy.server.replicas.replica_manager import ReplicaManager

FIRST_VERSION_WITH_ZSTD: Final = 10
_FIRST_VERSION_WITH_BATCHES: Final = 4
_FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6
_FIRST_VERSION_WITH_TIMESTAMPS: Final = 2
CONVERTED_BYTES_MAX: Final = 1 << 20
"""The limit of converted bytes in one response, beyond the first batch of each partition. With
small records, the conversion takes half a second."""
_READ_BYTES_MIN: Final = 1 << 16
"""The smallest read limit of a partition: its first batches may be markers, which are dropped."""


def adapt_errors(
    replicas: ReplicaManager, version: int, results: list[FetchResult]
) -> list[FetchResult]:
    """The rows of a fetch before `FIRST_VERSION_WITH_ZSTD`, with the errors of its version."""
    return [
        _convert_error(_version_error(replicas, version, result) or result, version)
        for result in results
    ]


def _version_error(
    replicas: ReplicaManager, version: int, result: FetchResult
) -> FetchResult | None:
    partition = _partition(replicas, result)
    if partition is None:
        return None
    config = partition.log.config
    if config.compression_type == "zstd":
        return FetchResult(result.wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version < _FIRST_VERSION_WITH_BATCHES and not config.message_downconversion_enable:
        return FetchResult(result.wanted, ErrorCode.UNSUPPORTED_VERSION)
    return None


def _convert_error(result: FetchResult, version: int) -> FetchResult:
    if (
        result.error == ErrorCode.KAFKA_STORAGE_ERROR
        and version < _FIRST_VERSION_WITH_STORAGE_ERROR
    ):
        result.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return result


def convert_records(
    replicas: ReplicaManager, version: int, results: list[FetchResult]
) -> Work[list[FetchResult]] | None:
    """The work that converts records to message sets; None if nothing must be converted. The
    records are read at once, because their files may be closed later.
    """
    if version >= _FIRST_VERSION_WITH_BATCHES or not any(r.size_bytes for r in results):
        return None
    rows, bytes_left = [], CONVERTED_BYTES_MAX
    for result in results:
        rows.append(_read_records(replicas, version, result, bytes_left))
        bytes_left = max(_READ_BYTES_MIN, bytes_left - len(result.records))
    return _convert_in_slices(version, rows)


def _read_records(
    replicas: ReplicaManager, version: int, result: FetchResult, bytes_left: int
) -> FetchResult:
    """The row with its records in memory, or with an error if they cannot be read. At most
    `bytes_left` are read, because no more are converted, but at least the first batch.
    """
    records, partition = result.records, _partition(replicas, result)
    if isinstance(records, bytes):
        return result
    try:
        head = records.take(LOG_OVERHEAD)
        first_batch_size = LOG_OVERHEAD + int.from_bytes(head[8:], "big")
        result.records = head + records.take(max(bytes_left, first_batch_size) - LOG_OVERHEAD)
        result.size_bytes = len(result.records)
    except OSError as error:
        # The file may have been deleted or truncated since the fetch found the region.
        if partition is not None and not isinstance(error, RegionInvalidated):
            failure = disk_error(partition.log.log_dir, error, f"for {partition.topic_partition}")
            if isinstance(failure, LogDirFailure):
                replicas.log_dir_failed(failure)
        refused = FetchResult(result.wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        return _convert_error(refused, version)
    return result


def _convert_in_slices(version: int, results: list[FetchResult]) -> Work[list[FetchResult]]:
    magic = 1 if version >= _FIRST_VERSION_WITH_TIMESTAMPS else 0
    bytes_left = CONVERTED_BYTES_MAX
    for index, result in enumerate(results):
        if not result.size_bytes or result.error:
            continue
        stored = result.records
        assert isinstance(stored, bytes)
        max_bytes = min(len(stored), bytes_left)
        do = partial(_down_convert, stored, magic, result.wanted.fetch_offset, max_bytes)
        outcome = yield from run_in_thread(do)
        if isinstance(outcome, ApiError):
            results[index] = FetchResult(result.wanted, outcome.code)
            continue
        result.records, result.size_bytes = outcome, len(outcome)
        bytes_left = max(0, bytes_left - len(outcome))
    return results


def _down_convert(stored: bytes, magic: int, first_offset: int, max_bytes: int) -> bytes | ApiError:
    try:
        return down_convert(stored, magic, first_offset, max_bytes, GilPause())
    except ApiError as refusal:
        return refusal


def _partition(replicas: ReplicaManager, result: FetchResult) -> Partition | None:
    wanted = result.wanted
    return replicas.partitions.get(wanted.topic or "", {}).get(wanted.partition)
