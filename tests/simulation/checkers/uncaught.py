"""Check that production code raises no uncaught exception and logs no traceback."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.node import Node


class Uncaught(Checker):
    """Reports the faults that event loops and loggers recorded."""

    def on_step(self, node: Node) -> None:
        if self.world.faults:
            self.violated(self.world.faults[0])

    def on_end(self) -> None:
        if self.world.faults:
            self.violated(self.world.faults[0])
