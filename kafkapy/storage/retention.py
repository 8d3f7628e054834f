"""The choice of segments to delete: too old, too many, or below the log start offset."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments

Breach = Callable[[LogSegment, int], bool]


def deletable_segments(
    segments: LogSegments,
    config: LogConfig,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
) -> tuple[list[LogSegment], str]:
    """The oldest segments to delete, with the reasons; none ends beyond the high watermark.

    The last of them may be the active one, if it holds records: the caller rolls first.
    """
    rules: list[tuple[str, Breach]] = [
        ("log start offset breach", lambda segment, upper: upper <= log_start_offset)
    ]
    if config.delete:
        rules += [
            ("retention time breach", _time_breach(config.retention_ms, now_ms)),
            ("retention size breach", _size_breach(config.retention_bytes, segments.total_bytes())),
        ]
    chosen: list[LogSegment] = []
    reasons: list[str] = []
    for reason, breached in rules:
        found = _oldest_breaching(segments, breached, high_watermark, log_end_offset)
        if len(found) > len(chosen):
            chosen = found
            reasons.append(reason)
    return chosen, ", ".join(reasons)


def _oldest_breaching(
    segments: LogSegments, breached: Breach, high_watermark: int, log_end_offset: int
) -> list[LogSegment]:
    found: list[LogSegment] = []
    for i, segment in enumerate(segments):
        is_last = i + 1 == len(segments)
        upper = log_end_offset if is_last else segments[i + 1].base_offset
        # The age of an empty segment would cost a disk access for every idle partition.
        if high_watermark < upper or (is_last and segment.size == 0):
            break
        if not breached(segment, upper):
            break
        found.append(segment)
    return found


def _time_breach(retention_ms: int, now_ms: int) -> Breach:
    def breached(segment: LogSegment, upper: int) -> bool:
        return retention_ms >= 0 and now_ms - segment.newest_ms() > retention_ms

    return breached


def _size_breach(retention_bytes: int, total: int) -> Breach:
    excess = total - retention_bytes

    def breached(segment: LogSegment, upper: int) -> bool:
        nonlocal excess
        if retention_bytes < 0 or excess - segment.size < 0:
            return False
        excess -= segment.size
        return True

    return breached
