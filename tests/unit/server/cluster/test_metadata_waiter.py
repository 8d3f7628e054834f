"""Waiters for metadata wake when the metadata is as wanted, or when their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kafkapy.common.cluster_state import (
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from tests.harness.storage.partitions import TOPIC_ID

A_MINUTE_MS = 60_000


class Waiting:
    """Metadata that changes, and a waiter for it."""

    def __init__(self) -> None:
        self.metadata = MetadataCache()
        self.waiter = MetadataWaiter(self.metadata)

    def update(self, leaders: dict[str, tuple[int, ...]]) -> None:
        """For each topic the leaders of its partitions, -1 for none, -2 for deleted."""
        rows = [
            UpdateMetadataPartition(
                topic, TOPIC_ID, index, LeaderAndIsr(leader, 0, (1,), 0, 1), (1,)
            )
            for topic, given in leaders.items()
            for index, leader in enumerate(given)
        ]
        self.metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, []))
        self.waiter.wake_waiters()


def woken(
    made: Waiting, wait: Callable[[], Awaitable[bool]], *updates: dict[str, tuple[int, ...]]
) -> list[bool]:
    """After each update, whether the wait was over; and last its result."""

    async def scenario() -> list[bool]:
        waiting = asyncio.ensure_future(wait())
        over = []
        for leaders in updates:
            await asyncio.sleep(0)
            made.update(leaders)
            for _ in range(5):
                await asyncio.sleep(0)
            over.append(waiting.done())
        return [*over, await waiting]

    return asyncio.run(scenario())


def test_topics_are_ready_when_every_partition_has_a_leader() -> None:
    made = Waiting()
    assert woken(
        made,
        lambda: made.waiter.wait_until_topics_ready(["a", "b"], A_MINUTE_MS),
        {"a": (1,)},
        {"b": (1, -1)},
        {"b": (1, 1)},
    ) == [False, False, True, True]


def test_a_topic_that_grows_is_ready_with_its_new_partitions() -> None:
    made = Waiting()
    assert woken(
        made,
        lambda: made.waiter.wait_until_topics_ready(["a"], A_MINUTE_MS, partitions=2),
        {"a": (1,)},
        {"a": (1, 1)},
    ) == [False, True, True]


def test_topics_are_gone_when_none_is_left() -> None:
    made = Waiting()
    made.update({"a": (1,), "b": (1,)})
    assert woken(
        made,
        lambda: made.waiter.wait_until_topics_removed(["a", "b"], A_MINUTE_MS),
        {"a": (-2,)},
        {"b": (-2,)},
    ) == [False, True, True]


def test_what_holds_already_is_not_waited_for_and_nobody_waits_without_time() -> None:
    made = Waiting()
    made.update({"a": (1,)})
    assert woken(made, lambda: made.waiter.wait_until_topics_ready(["a"], 0)) == [True]
    assert woken(made, lambda: made.waiter.wait_until_topics_ready(["b"], 0)) == [False]


def test_a_wait_that_is_over_leaves_nothing_behind() -> None:
    made = Waiting()
    assert woken(made, lambda: made.waiter.wait_until_topics_ready(["a"], 1)) == [False]
    assert made.waiter._waiters == {}
    made.update({"a": (1,)})


def test_who_is_told_of_changes_is_told_first() -> None:
    made = Waiting()
    told: list[bool] = []
    made.waiter.on_change = lambda: told.append(made.waiter.is_complete)
    made.update({"a": (1,)})
    made.waiter.mark_complete()
    assert told == [False, True]
