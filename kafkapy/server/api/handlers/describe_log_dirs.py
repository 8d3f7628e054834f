"""DescribeLogDirs (key 35), versions 0-4.

Behaviour: each log directory with the size of each hosted partition, and the lag of each future log
(`isFutureKey`); an offline directory has an error. Version notes: v4 adds the volume's total and
usable bytes (KIP-827).
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, Work
from kafkapy.storage.log_manager import LogManager


def handle(
    manager: LogManager, context: RequestContext, request: DescribeLogDirsRequest
) -> Work[DescribeLogDirsResponse]:
    """Describe all directories, for all or the requested partitions."""
    requested: dict[str, set[int]] | None = None
    if request.topics is not None:
        requested = {}
        for wanted in request.topics:
            requested.setdefault(wanted.topic, set()).update(wanted.partitions)
            yield 1 + len(wanted.partitions) // ROW_UNITS
    results = []
    for log_dir in (*manager.live_log_dirs, *manager.offline_log_dirs):
        if log_dir in manager.offline_log_dirs:
            results.append(
                DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir)
            )
            continue
        topics: dict[str, DescribeLogDirsTopic] = {}
        hosted = [
            *((log, log.high_watermark, False) for log in manager.logs.values()),
            *(
                (future, manager.logs[tp].log_end_offset, True)
                for tp, future in manager.future_logs.logs.items()
            ),
        ]
        for log, target_offset, is_future in sorted(hosted, key=lambda row: row[0].topic_partition):
            topic, partition = log.topic_partition
            yield 1
            if log.log_dir != log_dir:
                continue
            if requested is not None and partition not in requested.get(topic, ()):
                continue
            yield ROW_UNITS
            row = topics.setdefault(topic, DescribeLogDirsTopic(name=topic, partitions=[]))
            row.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition,
                    partition_size=log.size_bytes,
                    offset_lag=max(0, target_offset - log.log_end_offset),
                    is_future_key=is_future,
                )
            )
        total, usable = manager.volume_bytes(log_dir)
        results.append(
            DescribeLogDirsResult(
                log_dir=log_dir,
                topics=list(topics.values()),
                total_bytes=total,
                usable_bytes=usable,
            )
        )
    return DescribeLogDirsResponse(results=results)
