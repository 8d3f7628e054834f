"""Commits and fetches of offsets are fenced by member epoch."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import FetchOffsets, OffsetToCommit
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.group_shell import T0

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
STALE = ErrorCode.STALE_MEMBER_EPOCH
PRODUCER = Producer(1, 0)
Offsets = dict[TopicPartition, OffsetToCommit]


def committed(shell: ConsumerShell, **fields: Any) -> ErrorCode:
    errors = shell.replies[shell.commit(**fields)].errors
    (error,) = errors.values()
    assert isinstance(error, ErrorCode)
    return error


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": "m", "generation_id": 1}, NONE),
        ({"member_id": "m", "generation_id": 0}, STALE),
        ({"member_id": "m", "generation_id": 2}, STALE),
        ({"member_id": "n", "generation_id": 1}, UNKNOWN),
        ({"generation_id": -1}, UNKNOWN),
        (
            {"member_id": "m", "generation_id": 1, "may_have_member_epoch": False},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ({"producer": PRODUCER}, NONE),
        ({"producer": PRODUCER, "member_id": "m", "generation_id": 1}, NONE),
        ({"producer": PRODUCER, "member_id": "m", "generation_id": 0}, STALE),
        (
            {
                "producer": PRODUCER,
                "member_id": "m",
                "generation_id": 0,
                "may_have_member_epoch": False,
            },
            ErrorCode.ILLEGAL_GENERATION,
        ),
        ({"producer": PRODUCER, "member_id": "n", "generation_id": 1}, UNKNOWN),
    ],
)
def test_a_commit(fields: dict[str, Any], error: ErrorCode) -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    assert committed(shell, **fields) is error


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"may_have_member_epoch": False}, ErrorCode.ILLEGAL_GENERATION),
        ({"producer": PRODUCER}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"producer": PRODUCER, "may_have_member_epoch": False}, UNKNOWN),
    ],
)
def test_a_commit_of_a_member_in_an_unknown_group(fields: dict[str, Any], error: ErrorCode) -> None:
    assert committed(ConsumerShell(), member_id="m", generation_id=1, **fields) is error


def test_a_classic_member_has_a_generation() -> None:
    shell = ConsumerShell()
    shell.consumer("c")
    member_id = shell.replies[shell.join(requires_known_member_id=False)].member_id
    fields = {"member_id": member_id, "may_have_member_epoch": False}
    assert committed(shell, generation_id=2, **fields) is NONE
    assert committed(shell, generation_id=1, **fields) is ErrorCode.ILLEGAL_GENERATION
    fetch = FetchOffsets("g", None, member_id=member_id, member_epoch=1)
    found = shell.ask(shell.coordinator.fetch_offsets, fetch)
    assert found.error is ErrorCode.ILLEGAL_GENERATION


def test_anybody_may_commit_for_an_empty_group() -> None:
    shell = ConsumerShell()
    shell.consumer("m").leave()
    assert committed(shell) is NONE
    assert committed(shell, member_id="m", generation_id=1) is UNKNOWN


@pytest.mark.parametrize("again", [False, True], ids=["", "after a failover"])
def test_a_commit_of_an_epoch_that_has_passed(again: bool) -> None:
    """It is taken for partitions that the member has had since then (KIP-1251)."""
    shell = ConsumerShell()
    first = shell.consumer("a")
    shell.topics.grow("t", 5)
    first.beat()
    second = shell.consumer("b")
    first.beat()
    given = OffsetToCommit(1)
    kept, moved, grown = ({TopicPartition("t", index): given} for index in (0, 3, 4))

    def code(epoch: int, offsets: Offsets) -> ErrorCode:
        if again:
            shell.fail_over()
        return committed(shell, member_id="a", generation_id=epoch, offsets=offsets)

    # It commits before it revokes.
    assert [code(1, moved), code(1, grown), code(2, grown)] == [NONE, STALE, NONE]
    first.beat()
    assert [code(1, kept), code(2, moved), code(3, kept)] == [NONE, STALE, NONE]
    errors = shell.replies[shell.commit(member_id="a", generation_id=2, offsets=kept | moved)]
    assert set(errors.errors.values()) == {STALE}
    second.leave()
    first.beat()
    assert [code(3, kept), code(3, moved), code(4, moved)] == [NONE, STALE, NONE]
    deleted = {TopicPartition("gone", 0): given}
    assert [code(3, deleted), code(5, kept)] == [STALE, STALE]


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [(None, -1, NONE), ("m", 1, NONE), ("m", 2, STALE), ("n", 1, UNKNOWN), ("", 1, UNKNOWN)],
)
def test_a_fetch(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    shell = ConsumerShell()
    shell.consumer("m")
    committed(shell, member_id="m", generation_id=1, offset=5)
    request = FetchOffsets("g", [T0], member_id=member_id, member_epoch=epoch)
    result = shell.ask(shell.coordinator.fetch_offsets, request)
    assert result.error is error
    assert [row.offset for row in result.offsets.values()] == ([] if error else [5])


def test_offsets_of_a_classic_group_are_fetched_as_ever() -> None:
    shell = ConsumerShell()
    committed(shell, offset=5)
    request = FetchOffsets("g", [T0], member_id="m", member_epoch=3)
    result = shell.ask(shell.coordinator.fetch_offsets, request)
    assert (result.error, result.offsets[T0].offset) == (NONE, 5)
