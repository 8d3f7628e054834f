"""The states of a partition and the transitions between them (`kafka.controller.PartitionState`).

Illegal transitions are logged and skipped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class PartitionState(Enum):
    """Values are the names in Kafka's state-change log."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"

    @property
    def number(self) -> int:
        """The number in Kafka's metrics."""
        return _NUMBERS[self]


_NUMBERS: Final = {
    PartitionState.NEW: 0,
    PartitionState.ONLINE: 1,
    PartitionState.OFFLINE: 2,
    PartitionState.NON_EXISTENT: 3,
}

# NON_EXISTENT: never created, or deleted. NEW: assigned, without leader and ISR. ONLINE: has a
# leader. OFFLINE: its leader died. `partition_state_machine` lists the actions.
VALID_PREVIOUS_STATES: Final = {
    PartitionState.NEW: {PartitionState.NON_EXISTENT},
    PartitionState.ONLINE: {
        PartitionState.NEW,
        PartitionState.ONLINE,
        PartitionState.OFFLINE,
    },
    PartitionState.OFFLINE: {
        PartitionState.NEW,
        PartitionState.ONLINE,
        PartitionState.OFFLINE,
    },
    PartitionState.NON_EXISTENT: {PartitionState.OFFLINE},
}
