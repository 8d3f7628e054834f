"""The table of all checkers."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.checkers.client_view import ClientView
from tests.simulation.checkers.committed_logs import CommittedLogs
from tests.simulation.checkers.committed_offsets import CommittedOffsets
from tests.simulation.checkers.committed_reads import CommittedReads
from tests.simulation.checkers.controller_epochs import ControllerEpochs
from tests.simulation.checkers.convergence import Convergence
from tests.simulation.checkers.decisions import Decisions
from tests.simulation.checkers.deleted_topics import DeletedTopics
from tests.simulation.checkers.durable_cuts import DurableCuts
from tests.simulation.checkers.epoch_caches import EpochCaches
from tests.simulation.checkers.fencing import Fencing
from tests.simulation.checkers.flushed_logs import FlushedLogs
from tests.simulation.checkers.high_watermarks import HighWatermarks
from tests.simulation.checkers.idle_controllers import IdleControllers
from tests.simulation.checkers.in_sync_copies import InSyncCopies
from tests.simulation.checkers.isr_subsets import IsrSubsets
from tests.simulation.checkers.leader_epochs import LeaderEpochs
from tests.simulation.checkers.leader_isrs import LeaderIsrs
from tests.simulation.checkers.log_starts import LogStarts
from tests.simulation.checkers.offset_lookups import OffsetLookups
from tests.simulation.checkers.producer_states import ProducerStates
from tests.simulation.checkers.reassignments import Reassignments
from tests.simulation.checkers.share_deliveries import ShareDeliveries
from tests.simulation.checkers.sound_disks import SoundDisks
from tests.simulation.checkers.tables import Tables
from tests.simulation.checkers.transactions import Transactions
from tests.simulation.checkers.uncaught import Uncaught
from tests.simulation.checkers.waiting_requests import WaitingRequests

CHECKERS: tuple[type[Checker], ...] = (
    Uncaught,
    SoundDisks,
    ControllerEpochs,
    IdleControllers,
    LeaderEpochs,
    IsrSubsets,
    LeaderIsrs,
    HighWatermarks,
    CommittedLogs,
    EpochCaches,
    InSyncCopies,
    DurableCuts,
    FlushedLogs,
    ProducerStates,
    LogStarts,
    OffsetLookups,
    WaitingRequests,
    Tables,
    DeletedTopics,
    CommittedReads,
    Decisions,
    Fencing,
    Convergence,
    Reassignments,
    ClientView,
    CommittedOffsets,
    ShareDeliveries,
    Transactions,
)
