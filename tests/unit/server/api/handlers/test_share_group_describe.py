"""ShareGroupDescribe: groups with many partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kafkapy.server.api.handlers import share_group_describe
from kafkapy.server.coordinators.coordinator_service import CoordinatorService
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.share_shell import ShareShell


def test_groups_with_many_partitions_do_not_stop_other_clients() -> None:
    shell = ShareShell()
    shell.topics.create("large", 1_000)
    member = shell.member("m", "large")
    shell.begin()
    member.beat()
    assert len(member.partitions) == 1_000
    groups: Any = CoordinatorService(shell.coordinator, Mock(), shell.clock, Mock())
    features: Any = SimpleNamespace(has_share_groups=True)
    request = ShareGroupDescribeRequest(group_ids=["g"])
    context = request_context(77, 1)
    work: Any = share_group_describe.handle(groups, features, context, request)
    [cost] = list(work)
    assert cost >= 1_000
