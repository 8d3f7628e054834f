"""One simulated world from one seed: events, network, ensemble, brokers and observations."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.simulation.ensemble import Ensemble
from tests.simulation.events import Events
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.process import SimProcess
from tests.simulation.trace import Trace


class World:
    """The parts. `random` is the only source of randomness; `counts` are the numbers of events."""

    def __init__(self, seed: int, echo: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.events = Events()
        self.trace = Trace(lambda: self.events.now_us, echo)
        self.network = Network(self.events, self.random, self.trace)
        self.ensemble = Ensemble(self.events, self.network, self.trace)
        self.nodes: dict[int, Node] = {}
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.processes: list[SimProcess] = []
        self._echo = echo

    def process(self, host: str) -> SimProcess:
        """Create a process on a host."""
        made = SimProcess(  # type: ignore[abstract]  # unused methods are left out
            self.events, self.network, host, lambda error, message: self.fault(host, error, message)
        )
        self.processes.append(made)
        return made

    @property
    def is_echoing(self) -> bool:
        """Whether readable lines are echoed."""
        return self._echo is not None

    def fault(self, host: str, error: BaseException | None, message: str) -> None:
        """Record an uncaught exception of production code or of a client."""
        lines = "" if error is None else "".join(traceback.format_exception(error))
        self.faults.append(f"{host}: {message}\n{lines}")

    def log(self, host: str, message: str) -> None:
        """Echo a line that is not part of the trace."""
        if self._echo is not None:
            self._echo(f"{self.events.now_us / 1e6:10.6f} {host:<10}   {message}")
