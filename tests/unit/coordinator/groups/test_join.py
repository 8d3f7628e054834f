"""JoinGroup: what is refused, and the ids it hands out."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from tests.harness.cores.group_shell import GroupShell


@pytest.mark.parametrize(
    ("session_timeout_ms", "error"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeouts_have_bounds(session_timeout_ms: int, error: ErrorCode) -> None:
    shell = GroupShell()
    token = shell.join(session_timeout_ms=session_timeout_ms)
    assert shell.replies[token].error is error


def test_a_dynamic_members_id_is_its_clients_and_a_uuid() -> None:
    shell = GroupShell()
    result = shell.replies[shell.join(client_id="app")]
    assert result.member_id == "app-00000000-0000-4000-8000-000000000001"


def test_a_static_members_id_is_its_instances_and_a_uuid() -> None:
    shell = GroupShell()
    token = shell.join(client_id="app", group_instance_id="node-1")
    shell.advance(3_000)
    assert shell.replies[token].member_id == "node-1-00000000-0000-4000-8000-000000000001"


def test_a_refused_join_keeps_the_id_it_came_with() -> None:
    shell = GroupShell()
    result = shell.replies[shell.join("stranger")]
    assert (result.error, result.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    assert shell.coordinator._core.registry.find("g") is None


def test_a_pending_id_is_not_a_static_members() -> None:
    shell = GroupShell()
    member_id = shell.replies[shell.join()].member_id
    token = shell.join(member_id, group_instance_id="i1")
    assert shell.replies[token].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_join_of_a_member_releases_the_first() -> None:
    shell = GroupShell()
    member_id, first = shell.join_new()
    second = shell.join(member_id)
    assert shell.replies[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    shell.advance(3_000)
    assert shell.replies[second].generation_id == 1


def test_without_a_rebalance_timeout_the_session_timeout_counts() -> None:
    shell = GroupShell()
    shell.join_new(rebalance_timeout_ms=-1, session_timeout_ms=12_345)
    assert shell.group().rebalance_timeout_ms == 12_345


@pytest.mark.parametrize(
    "fields",
    [
        {"client_id": "c" * 32_731},
        {"group_instance_id": "i" * 32_731},
        {"client_host": "h" * 32_768},
        {"protocol_type": "t" * 32_768},
        {"protocols": [("p" * 32_768, b"")]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_no_record_could_hold_is_refused(fields: dict[str, Any]) -> None:
    shell = GroupShell()
    assert shell.replies[shell.join(**fields)].error is ErrorCode.INVALID_REQUEST


def test_the_longest_id_can_be_stored() -> None:
    shell = GroupShell()
    member_id, _ = shell.join_new(client_id="c" * 32_730)
    shell.advance(3_000)
    assert shell.replies[shell.sync(member_id, 1)].error is ErrorCode.NONE


def test_pending_ids_do_not_count_against_the_size() -> None:
    shell = GroupShell(GroupConfig(offsets_topic_num_partitions=1, group_max_size=1))
    ids = [shell.replies[shell.join()].member_id for _ in range(2)]
    first = shell.join(ids[0])
    second = shell.join(ids[1])
    assert shell.replies[second].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not shell.group().pending_members
    shell.advance(3_000)
    assert shell.replies[first].generation_id == 1


def test_an_unchanged_follower_keeps_its_session() -> None:
    shell = GroupShell()
    _, follower = shell.stable_pair()
    shell.advance(9_000)
    assert shell.replies[shell.join(follower)].generation_id == 1
    shell.advance(9_000)
    assert follower in shell.group().members


def test_a_static_member_whose_new_id_is_not_stored_is_as_before() -> None:
    shell = GroupShell()
    first = shell.join(group_instance_id="i1")
    shell.advance(3_000)
    old_id = shell.replies[first].member_id
    shell.sync(old_id, 1, group_instance_id="i1")
    before = shell.group().value({})
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    fields = {"session_timeout_ms": 20_000, "rebalance_timeout_ms": 7}
    token = shell.join(group_instance_id="i1", protocols=[("range", b"new")], **fields)
    assert shell.replies[token].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shell.group().value({}) == before
    shell.advance(9_999)
    assert old_id in shell.group().members
    shell.advance(1)
    assert old_id not in shell.group().members
