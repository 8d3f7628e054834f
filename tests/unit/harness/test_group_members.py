"""Errors that end a consumer of librdkafka, and the check of what a group consumed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from tests.harness.faults import group_members
from tests.harness.faults.group_members import FENCED, Group, fatal_name


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (KafkaError(KafkaError.FENCED_INSTANCE_ID), FENCED),
        (KafkaError(KafkaError._FATAL, "Fatal error: Broker: Static consumer fenced by"), FENCED),
        (KafkaError(KafkaError._FATAL, "Fatal error: Group authorization failed"), "_FATAL"),
        (KafkaError(KafkaError._TRANSPORT), None),
    ],
)
def test_a_fenced_consumer_is_known_whatever_was_refused(
    error: KafkaError, name: str | None
) -> None:
    """A member whose heartbeat was refused would be waited for: it does not say so by its code."""
    assert fatal_name(error) == name


@pytest.mark.parametrize(
    ("committed", "accepted", "consumed", "is_right"),
    [
        (4, [2, 4], [0, 1, 2, 3], True),
        (2, [4, 2], [0, 1, 2, 3], True),  # the earlier commit was sent again
        (2, [4, 2], [0, 1, 2, 3, 2, 3], True),  # and its records were consumed again
        (2, [4, 2], [0, 1, 2, 3, 4], False),
        (2, [2, 4], [0, 1, 2, 3], False),
        (4, [2, 4], [0, 1, 2, 3, 3], False),
        (4, [2, 4], [0, 1, 3], False),
    ],
)
def test_a_group_consumes_what_it_committed(
    monkeypatch: pytest.MonkeyPatch,
    committed: int,
    accepted: list[int],
    consumed: list[int],
    is_right: bool,
) -> None:
    member = SimpleNamespace(
        consumed=[(0, offset) for offset in consumed],
        accepted={0: accepted},
        refused=set(),
    )
    group = object.__new__(Group)
    group.name, group.instances = "g", [member]
    group._servers, group._topic, group._partitions = "b:1", "t", 1
    monkeypatch.setattr(group_members, "committed", lambda *_: [committed])
    if is_right:
        group.check()
    else:
        with pytest.raises(AssertionError, match="group g, partition 0: committed"):
            group.check()
