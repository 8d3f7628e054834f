"""Check that a reassignment ends in exactly its target, a cancelled one in the old assignment."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker


class Reassignments(Checker):
    """Compares the final assignments with the last requested ones."""

    def on_end(self) -> None:
        for topic_partition, allowed in self.cluster.targets.items():
            found = self.cluster.assignment(topic_partition)
            if found is not None and found not in allowed:
                wanted = " or ".join(map(str, allowed))
                self.violated(f"{topic_partition} is on {found}; asked for was {wanted}")
