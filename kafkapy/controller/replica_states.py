"""The states of a replica and the transitions between them (`kafka.controller.ReplicaState`).

Illegal transitions are logged and skipped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class ReplicaState(Enum):
    """Values are the names in Kafka's state-change log."""

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"

    @property
    def number(self) -> int:
        """The number in Kafka's metrics: 1 (new) to 7 (non-existent), in order of declaration."""
        return list(ReplicaState).index(self) + 1


# NEW: assigned, may only become a follower. ONLINE: takes LeaderAndIsr. OFFLINE: its broker or log
# directory is dead. The three deletion states are those of a StopReplica(delete): sent,
# done, refused. `replica_state_machine` lists the actions.
VALID_PREVIOUS_STATES: Final = {
    ReplicaState.NEW: {ReplicaState.NON_EXISTENT},
    ReplicaState.ONLINE: {
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    },
    ReplicaState.OFFLINE: {
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    },
    ReplicaState.DELETION_STARTED: {ReplicaState.OFFLINE},
    ReplicaState.DELETION_SUCCESSFUL: {ReplicaState.DELETION_STARTED},
    ReplicaState.DELETION_INELIGIBLE: {
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
    },
    ReplicaState.NON_EXISTENT: {ReplicaState.DELETION_SUCCESSFUL},
}
