"""ConsumerGroupDescribe: groups with many partitions."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkapy.server.api.handlers import consumer_group_describe
from kafkapy.server.coordinators.coordinator_service import CoordinatorService
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.request_contexts import request_context


def test_groups_with_many_partitions_do_not_stop_other_clients() -> None:
    """The partitions did not count as work: 300 groups with 1,000 took 0.4 s in one turn."""
    shell = ConsumerShell()
    shell.topics.create("large", 1_000)
    shell.consumer("m", topics=["large"])
    groups: Any = CoordinatorService(shell.coordinator, Mock(), shell.clock, Mock())
    request = ConsumerGroupDescribeRequest(group_ids=["g"])
    work: Any = consumer_group_describe.handle(groups, Mock(), request_context(69, 1), request)
    [cost] = list(work)
    assert cost >= 2_000  # of the assignment and of the target
