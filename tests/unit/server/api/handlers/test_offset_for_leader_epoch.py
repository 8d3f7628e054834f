"""Which broker answers with the end offset of an epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkapy.server.api.handlers import offset_for_leader_epoch
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts


@pytest.mark.parametrize("version", [0, 2, 4])
def test_a_client_does_not_take_the_end_of_a_follower_for_that_of_the_leader(
    tmp_path: Path, version: int
) -> None:
    """Versions before 3 have no replica id. Its default, -2, let followers answer."""
    parts = Parts(tmp_path)
    parts.lead(leader=2, isr=(1, 2))
    row = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[row])]
    )
    context = request_context(23, version)
    answer = run_now(offset_for_leader_epoch.handle(parts.replicas, context, request))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
