"""Committed offsets never go back: a group finds at least what was acknowledged last."""

from __future__ import annotations

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from tests.simulation.checkers.base import Checker


class CommittedOffsets(Checker):
    """Holds what each group finds at the end against what it committed."""

    def on_end(self) -> None:
        history = self.cluster.history
        if (GROUP_METADATA_TOPIC, 0) in history.lossy:
            return
        for group in history.commits:
            found, known = self.cluster.offsets_found.get(group, -1), history.last_commit(group)
            if found < known:
                self.violated(f"{group} committed {known} and finds {found}")
