"""JoinGroup: what is refused, and the ids it hands out."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.consumer_protocol import BYTES_MAX
from kafkapy.common.errors import ErrorCode
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.group_shell import SUBSCRIBED_T, GroupShell


def test_a_dynamic_members_id_is_its_clients_and_a_uuid() -> None:
    shell = GroupShell()
    result = shell.replies[shell.join(client_id="app")]
    assert result.member_id == "app-00000000-0000-4000-8000-000000000001"


def test_a_static_members_id_is_its_instances_and_a_uuid() -> None:
    shell = GroupShell()
    token = shell.join(client_id="app", group_instance_id="node-1")
    shell.advance(3_000)
    assert shell.replies[token].member_id == "node-1-00000000-0000-4000-8000-000000000001"


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


def test_a_subscription_beyond_the_limit_is_refused_in_a_consumer_group() -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    long = SUBSCRIBED_T.ljust(BYTES_MAX + 1, b"\0")
    result = shell.replies[shell.join(protocols=[("range", long)])]
    assert result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    result = shell.replies[shell.join(protocols=[("range", long[:-1])])]
    assert result.error is ErrorCode.MEMBER_ID_REQUIRED
    assert [*shell.consumers.members] == ["m"]
