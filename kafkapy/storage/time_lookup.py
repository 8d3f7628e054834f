"""Finds offsets by timestamp (ListOffsets; Kafka's `UnifiedLog.fetchOffsetByTimestamp`)."""

from __future__ import annotations

from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_segment import Search, TimestampOffset, first_record


def first_at_or_after(
    local: LocalLog, timestamp: int, start_offset: int, search: Search = first_record
) -> TimestampOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`."""
    for segment in local.segments.from_offset(start_offset):
        if segment.max_timestamp >= timestamp:
            found = segment.find_by_timestamp(timestamp, start_offset, search)
            if found is not None:
                return found
    return None


def offsets_before(
    local: LocalLog, timestamp: int | None, start_offset: int, now_ms: int
) -> list[int]:
    """Base offsets of the segments that were last written by `timestamp` (None: all), newest first.
    The end of the log precedes them; it counts as written now
    (`UnifiedLog.legacyFetchOffsetsBefore`).
    """
    offsets = [max(segment.base_offset, start_offset) for segment in local.segments]
    has_end = local.segments.active.records.size > 0
    if timestamp is not None:
        times = [segment.modified_ms() for segment in local.segments]
        known = len(times)
        while known and times[known - 1] > timestamp:
            known -= 1
        has_end = has_end and now_ms <= timestamp
        if not has_end:
            offsets = offsets[:known]
    if has_end:
        offsets.append(local.log_end_offset)
    return sorted(offsets, reverse=True)


def record_of_max_timestamp(
    local: LocalLog, search: Search, start_offset: int
) -> TimestampOffset | None:
    """The first record from `start_offset` on that has the greatest timestamp of the log; None for
    a log without times.
    """
    segment = max(local.segments, key=lambda s: s.max_timestamp)
    timestamp = segment.max_timestamp
    if timestamp < 0:
        return None
    first = segment.find(max(segment.offset_of_max_timestamp, start_offset))
    return None if first is None else search(segment.records, first[0], timestamp, start_offset)
