"""Requests for many groups with long ids, whose hashes are slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    offset_fetch,
    share_group_describe,
)
from kafkapy.server.requests.turns import SLICE_UNITS, STEP_UNITS_MAX
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

IDS = [str(number) * 30_000 for number in range(9)]


@pytest.mark.parametrize("key", [9, 15, 42, 69, 77])
def test_long_group_ids_do_not_stop_other_clients(tmp_path: Path, key: int) -> None:
    """A request for 250 ids of 32 KB was one step of 3 s."""
    groups, context = Parts(tmp_path).groups, request_context(key, 8 if key == 9 else 1)
    works: dict[int, Any] = {
        9: lambda: offset_fetch.handle(
            groups,
            Mock(),
            Authorization(None),
            context,
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each) for each in IDS]),
        ),
        15: lambda: describe_groups.handle(groups, context, DescribeGroupsRequest(groups=IDS)),
        42: lambda: delete_groups.handle(
            groups, Mock(), Mock(), context, DeleteGroupsRequest(groups_names=IDS)
        ),
        69: lambda: consumer_group_describe.handle(
            groups, Mock(), context, ConsumerGroupDescribeRequest(group_ids=IDS)
        ),
        77: lambda: share_group_describe.handle(
            groups, Mock(), context, ShareGroupDescribeRequest(group_ids=IDS)
        ),
    }
    costs = list(works[key]())
    assert sum(SLICE_UNITS // 2 < cost < STEP_UNITS_MAX for cost in costs) >= len(IDS)
    assert max(costs) < STEP_UNITS_MAX
