"""The requests of consumer groups: which heartbeat wants to be told everything."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat


@pytest.mark.parametrize(
    ("fields", "is_full"),
    [
        ({"member_epoch": 0}, True),
        ({}, False),
        ({"rebalance_timeout_ms": 1, "subscribed_names": [], "owned": {}}, True),
        ({"rebalance_timeout_ms": 1, "subscribed_regex": "a", "owned": {}}, True),
        ({"rebalance_timeout_ms": 1, "subscribed_names": []}, False),
        ({"subscribed_names": [], "owned": {}}, False),
        ({"rebalance_timeout_ms": 1, "owned": {}}, False),
    ],
)
def test_a_full_heartbeat(fields: dict[str, Any], is_full: bool) -> None:
    who = {"group_id": "g", "member_id": "m", "member_epoch": 3}
    heartbeat = ConsumerHeartbeat(**(who | fields))
    assert heartbeat.is_full is is_full
