"""The full product of replica states: which may follow which."""

from __future__ import annotations

import pytest

from kafkapy.controller.replica_states import VALID_PREVIOUS_STATES, ReplicaState

# Columns in the order of declaration: New, Online, Offline, Started, Successful, Ineligible, None.
PRODUCT = {
    ReplicaState.NEW: "-12----",
    ReplicaState.ONLINE: "-12----",
    ReplicaState.OFFLINE: "-123-5-",
    ReplicaState.DELETION_STARTED: "----45-",
    ReplicaState.DELETION_SUCCESSFUL: "------6",
    ReplicaState.DELETION_INELIGIBLE: "-12----",
    ReplicaState.NON_EXISTENT: "0------",
}


@pytest.mark.parametrize("before", ReplicaState)
def test_transitions(before: ReplicaState) -> None:
    legal = [
        str(column) if before in VALID_PREVIOUS_STATES[target] else "-"
        for column, target in enumerate(ReplicaState)
    ]
    assert "".join(legal) == PRODUCT[before]


def test_metrics_numbers() -> None:
    assert [state.number for state in ReplicaState] == [1, 2, 3, 4, 5, 6, 7]
    assert ReplicaState.NON_EXISTENT.number == 7
