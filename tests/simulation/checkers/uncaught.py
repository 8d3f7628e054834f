"""No production code raises what nobody catches, or logs a traceback."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.node import Node


class Uncaught(Checker):
    """Looks at the faults that loops and loggers reported."""

    def on_step(self, node: Node) -> None:
        if self.world.faults:
            self.violated(self.world.faults[0])

    def on_end(self) -> None:
        if self.world.faults:
            self.violated(self.world.faults[0])
