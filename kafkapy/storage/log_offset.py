"""An offset with the position of its batch in the files (Kafka's `LogOffsetMetadata`)."""

from __future__ import annotations

from typing import NamedTuple


class LogOffsetMetadata(NamedTuple):
    """`position` is in bytes in the segment that begins at `segment_base_offset`.

    The distance in bytes between two of them in one segment is known without reading the disk.
    """

    offset: int
    segment_base_offset: int
    position: int
