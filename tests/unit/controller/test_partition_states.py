"""The full product of partition states: which may follow which."""

from __future__ import annotations

import pytest

from kafkapy.controller.partition_states import VALID_PREVIOUS_STATES, PartitionState

# Rows: from; columns in the order of declaration: NonExistent, New, Online, Offline.
PRODUCT = {
    PartitionState.NON_EXISTENT: "-N--",
    PartitionState.NEW: "--OF",
    PartitionState.ONLINE: "--OF",
    PartitionState.OFFLINE: "X-OF",
}


@pytest.mark.parametrize("before", PartitionState)
def test_transitions(before: PartitionState) -> None:
    legal = [
        letter if before in VALID_PREVIOUS_STATES[target] else "-"
        for target, letter in zip(PartitionState, "XNOF", strict=True)
    ]
    assert "".join(legal) == PRODUCT[before]


def test_metrics_numbers() -> None:
    assert {state.value: state.number for state in PartitionState} == {
        "NewPartition": 0,
        "OnlinePartition": 1,
        "OfflinePartition": 2,
        "NonExistentPartition": 3,
    }
