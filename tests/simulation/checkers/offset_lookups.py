"""Check that a read begins with the batch of its offset, whatever the offset index contains."""

from __future__ import annotations

from kafkapy.storage.log_segment import LogSegment
from tests.simulation.checkers.base import Checker


class OffsetLookups(Checker):
    """Looks up each batch of the closed segments when all faults are over. Seeds damage indexes,
    and clients rarely read by the damaged entries."""

    def on_end(self) -> None:
        for node in self.world.nodes.values():
            with node.without_faults():
                for partition in node.partitions():
                    for segment in list(partition.log.segments)[:-1]:
                        self._look_up(segment)

    def _look_up(self, segment: LogSegment) -> None:
        for position, header in segment.records.headers():
            found = segment.find(header.base_offset)
            if found is None or found[0] != position:
                self.violated(
                    f"{segment.records.path}: offset {header.base_offset} is at {position},"
                    f" found {found}"
                )
