"""ListGroups: many groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import CommitOffsets, OffsetToCommit
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.server.api.handlers import list_groups
from kafkapy.server.requests.turns import STEP_UNITS_MAX, run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

GROUPS = 600


def test_many_groups_do_not_stop_other_clients(tmp_path: Path) -> None:
    """A response with all groups was made in one step."""
    parts = Parts(tmp_path)
    parts.coordinate()
    groups = parts.groups
    for number in range(GROUPS):
        commit = CommitOffsets(f"g-{number}", {TopicPartition("t", 0): OffsetToCommit(5)})
        groups.call_now(groups.coordinator.commit_offsets, commit, lambda result: result)

    def handle(request: ListGroupsRequest) -> Any:
        return list_groups.handle(groups, request_context(16, 5), request)

    for request in (ListGroupsRequest(), ListGroupsRequest(states_filter=["Stable"])):
        costs = [*handle(request)]
        assert len(costs) >= 3
        assert sum(costs) >= GROUPS
        assert max(costs) < STEP_UNITS_MAX
    listed = run_now(handle(ListGroupsRequest())).groups
    assert [row.group_id for row in listed] == [f"g-{number}" for number in range(GROUPS)]
