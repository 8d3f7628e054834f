"""Requests preferred leader elections through the znode, for `--zookeeper`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkapy.common.errors import KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import NodeExists


class ElectionRefused(KafkapyError):
    """An earlier election request is still pending."""


class RequestedElection(NamedTuple):
    """The requested partitions, and those left out because they do not exist."""

    partitions: list[TopicPartition]
    absent: list[TopicPartition]


def request_preferred_election(
    connect: str, partitions: Iterable[TopicPartition] | None
) -> RequestedElection:
    """Request preferred leader elections of partitions (None: all). Does not wait for the result.

    Raises:
        ElectionRefused: an earlier request is still pending.
        ZooKeeperUnavailable: no server answers.
    """
    return with_zookeeper(connect, lambda store: _request(store, partitions))


async def _request(
    store: ZkStore, partitions: Iterable[TopicPartition] | None
) -> RequestedElection:
    known = [
        TopicPartition(name, index)
        for name, topic in (await store.topics.get_all(await store.topics.names(), {})).items()
        for index in sorted(topic.assignment)
    ]
    requested = known if partitions is None else list(partitions)
    existing = set(known)
    valid = [tp for tp in requested if tp in existing]
    try:
        await store.requests.request_preferred_elections(valid)
    except NodeExists:
        running = await store.requests.preferred_elections() or []
        raise ElectionRefused(
            "Admin command failed: Preferred replica leader election currently in progress for"
            f" {', '.join(map(str, running))}. Aborting operation"
        ) from None
    return RequestedElection(valid, [tp for tp in requested if tp not in existing])
