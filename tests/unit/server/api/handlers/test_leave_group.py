"""LeaveGroup of a consumer group: its answer waits for the log; that of a classic one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkapy.server.api.handlers import leave_group
from kafkapy.server.requests.outcomes import Pending
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts


def join(parts: Parts, member_id: str) -> None:
    parts.waiter.mark_complete()
    beat = ConsumerHeartbeat(
        "g", member_id, 0, rebalance_timeout_ms=1, subscribed_names=["t"], owned={}
    )
    parts.groups.call(parts.groups.coordinator.consumer_heartbeat, beat, lambda result: result)


def leave(parts: Parts, version: int, *members: str) -> Any:
    request = LeaveGroupRequest(
        group_id="g",
        member_id=members[0],
        members=[MemberIdentity(member_id=member) for member in members],
    )
    return run_now(leave_group.handle(parts.groups, request_context(13, version), request))


@pytest.mark.parametrize("version", [2, 5])
def test_the_answer_waits_until_the_departure_is_replicated(tmp_path: Path, version: int) -> None:
    parts = Parts(tmp_path)
    partition = parts.coordinate(isr=(1, 2), replicas=(1, 2))
    join(parts, "m")
    answer = leave(parts, version, "m")
    assert isinstance(answer, Pending)
    assert not answer.done
    parts.fetch_as_follower(partition, partition.log.log_end_offset)
    response = run_now(answer.response)
    codes = [row.error_code for row in response.members]
    assert (response.error_code, codes) == (ErrorCode.NONE, [ErrorCode.NONE] * (version > 2))
    assert not parts.groups.coordinator._core.registry.find("g").consumer.members


def test_many_members_are_one_answer(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.coordinate()
    join(parts, "m")
    names = ["m", *(f"unknown-{number}" for number in range(600))]
    response = leave(parts, 5, *names)
    assert [row.member_id for row in response.members] == names
    codes = [row.error_code for row in response.members]
    assert codes == [ErrorCode.NONE, *[ErrorCode.UNKNOWN_MEMBER_ID] * 600]


@pytest.mark.parametrize("version", [2, 5])
def test_the_answer_says_that_the_coordinator_is_another(tmp_path: Path, version: int) -> None:
    parts = Parts(tmp_path)
    parts.coordinate(isr=(1, 2), replicas=(1, 2))
    join(parts, "m")
    answer = leave(parts, version, "m")
    parts.coordinate_on_other_broker()
    assert run_now(answer.response).error_code == ErrorCode.NOT_COORDINATOR
