"""An offset with the place of its batch in the files (Kafka's `LogOffsetMetadata`)."""

from __future__ import annotations

from typing import NamedTuple


class LogOffsetMetadata(NamedTuple):
    """`position` is in bytes in the segment that begins at `segment_base_offset`.

    Between two of the same segment the distance in bytes is known without a look at the disk.
    """

    offset: int
    segment_base_offset: int
    position: int
