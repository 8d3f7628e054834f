"""When all faults are over, the cluster heals: leaders, full ISRs, equal logs, work done."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker


class Convergence(Checker):
    """Objects to what had not settled within the limit."""

    def on_end(self) -> None:
        missing = self.cluster.never_settled
        if missing:
            self.violated(f"still, long after all faults: {'; '.join(missing)}")
