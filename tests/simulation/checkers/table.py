"""All checkers."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.checkers.client_view import ClientView
from tests.simulation.checkers.committed_logs import CommittedLogs
from tests.simulation.checkers.committed_offsets import CommittedOffsets
from tests.simulation.checkers.controller_epochs import ControllerEpochs
from tests.simulation.checkers.convergence import Convergence
from tests.simulation.checkers.high_watermarks import HighWatermarks
from tests.simulation.checkers.isr_subsets import IsrSubsets
from tests.simulation.checkers.leader_epochs import LeaderEpochs
from tests.simulation.checkers.reassignments import Reassignments
from tests.simulation.checkers.transactions import Transactions
from tests.simulation.checkers.uncaught import Uncaught

CHECKERS: tuple[type[Checker], ...] = (
    Uncaught,
    ControllerEpochs,
    LeaderEpochs,
    IsrSubsets,
    HighWatermarks,
    CommittedLogs,
    Convergence,
    Reassignments,
    ClientView,
    CommittedOffsets,
    Transactions,
)
