"""Check that the cluster recovers from all faults: leaders, full ISRs, equal logs, done work."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker


class Convergence(Checker):
    """Reports everything that had not settled within the limit."""

    def on_end(self) -> None:
        missing = self.cluster.remaining_problems
        if missing:
            self.violated(f"still, long after all faults: {'; '.join(missing)}")
