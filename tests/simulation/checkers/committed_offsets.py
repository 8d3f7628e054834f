"""Check that committed offsets never go back: a group finds at least its last acknowledged one.

Commits before an allowed loss of the coordinator's log do not count.
"""

from __future__ import annotations

from tests.simulation.checkers.base import Checker


class CommittedOffsets(Checker):
    """Compares the offset that each group finds at the end with the one that it committed."""

    def on_end(self) -> None:
        history = self.cluster.history
        for group in history.groups:
            found, known = self.cluster.offsets_found.get(group, -1), history.last_commit(group)[1]
            if found < known:
                self.violated(f"{group} committed {known} and finds {found}")
