"""Topics that the coordinator reads from the subscriptions of consumers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.groups.consumer_protocol import subscribed_topics

V0 = bytes.fromhex("0000 00000002 0001 61 0002 6262 ffffffff")
V3 = bytes.fromhex("0003 00000001 0001 63 00000000 00000000 00000007 ffff")


def test_topics_of_every_version() -> None:
    assert subscribed_topics([V0]) == {"a", "bb"}
    assert subscribed_topics([V0, V3]) == {"a", "bb", "c"}


def test_no_members_subscribe_to_nothing() -> None:
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0000",
        "0000 0000",
        "ffff 00000000",
        "0000 ffffffff",
        "0000 00000001",
        "0000 00000001 0005 61",
        "0000 00000001 ffff",
        "0000 00000001 0001 ff",
        "0000 7fffffff 0001 61",
    ],
)
def test_what_is_not_a_consumers_is_unknown(data: str) -> None:
    assert subscribed_topics([V0, bytes.fromhex(data)]) is None


@given(st.binary())
def test_no_bytes_break_it(data: bytes) -> None:
    topics = subscribed_topics([data])
    assert topics is None or all(isinstance(topic, str) for topic in topics)
