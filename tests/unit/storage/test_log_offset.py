"""Offsets with their place."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.log_offset import LogOffsetMetadata
from tests.harness.storage.log_builder import LogBuilder


def test_the_distance_in_bytes_between_two_places(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append().append().log
    start, end = log.offset_metadata(1), log.local.end_metadata()
    assert isinstance(start, LogOffsetMetadata)
    assert start.segment_base_offset == end.segment_base_offset
    assert end.position - start.position == log.size_bytes // 2
