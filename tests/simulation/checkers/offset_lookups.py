"""A read begins with the batch that holds its offset, whatever the offset index says."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker


class OffsetLookups(Checker):
    """Looks up each batch of the closed segments when all faults are over: seeds damage indexes,
    and clients hardly ever read what is behind these places."""

    def on_end(self) -> None:
        for node in self.world.nodes.values():
            with node.unhindered():
                for partition in node.partitions():
                    for segment in list(partition.log.segments)[:-1]:
                        for position, header in segment.records.headers():
                            found = segment.find(header.base_offset)
                            if found is None or found[0] != position:
                                self.violated(
                                    f"{partition.topic_partition} of {node.host}: offset"
                                    f" {header.base_offset} is at {position}, found {found}"
                                )
