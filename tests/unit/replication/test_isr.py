"""Refusals of AlterPartition, and what each means for the proposal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.scenarios.replication import ReplicationWorld


@pytest.mark.parametrize(
    ("error", "outcome", "still_pending"),
    [
        ("OPERATION_NOT_ATTEMPTED", "dropped", False),
        ("INELIGIBLE_REPLICA", "dropped", False),
        ("FENCED_LEADER_EPOCH", "waits for LeaderAndIsr", True),
        ("INVALID_UPDATE_VERSION", "waits for LeaderAndIsr", True),
        ("UNKNOWN_TOPIC_ID", "waits for LeaderAndIsr", True),
        ("NOT_CONTROLLER", "to be sent again", True),
        ("UNKNOWN_SERVER_ERROR", "to be sent again", True),
    ],
)
def test_each_refusal_has_its_consequence(
    tmp_path: Path, error: str, outcome: str, still_pending: bool
) -> None:
    world = ReplicationWorld(tmp_path)
    for step in (
        "broker 1 leads, replicas 1 2 3",
        "broker 2 fetches from 0",
        "maybe expand the ISR by 2",
    ):
        world.perform(step)
    assert world.perform(f"the controller refuses with {error}") == [outcome]
    in_sync = world.partition.in_sync
    assert in_sync.committed == {1}
    assert (in_sync.pending is world.change) is still_pending
    assert in_sync.maximal == ({1, 2} if still_pending else {1})
