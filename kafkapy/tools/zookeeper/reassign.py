"""Reassignments through the znode, for `--zookeeper` (Kafka 2.8 and before).

The tool writes the moves into `/admin/reassign_partitions`; the controller removes completed moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkapy.admin.planning.throttle_plan import (
    BROKER_RATES,
    FOLLOWER_RATE,
    LEADER_RATE,
    TOPIC_REPLICAS,
    ThrottlePlan,
)
from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.partition_files import ReassignmentFile
from kafkapy.tools.reassign.reassignment import ALREADY_RUNNING
from kafkapy.tools.reassign.states import PartitionState, partition_states
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.stores.config_store import until_unchanged
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import NodeExists

NEEDS_BROKERS = "bootstrap-server needs to be provided when replica reassignments are present."


class ZnodeVerification(NamedTuple):
    """The verification that is possible with ZooKeeper alone."""

    partitions: list[PartitionState]
    any_running: bool
    live: list[int]


class ZnodeReassignments:
    """The reassignments of the cluster whose znodes are at `connect`; each call is a session.

    Its methods raise ReassignmentFailed if Kafka's tool would refuse, ZooKeeperUnavailable if no
    server answers.
    """

    def __init__(self, connect: str) -> None:
        self._connect = connect

    def layout(
        self, topics: Iterable[str]
    ) -> tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]]:
        """The replicas of topics, and the live brokers."""

        async def read(store: ZkStore) -> Any:
            return await assignments(store, topics), await live_brokers(store)

        found, brokers = with_zookeeper(self._connect, read)
        return found, brokers

    def check(self, file: ReassignmentFile) -> dict[TopicPartition, tuple[int, ...]]:
        """Check that a file can be executed. Returns the current replicas of its partitions."""
        return with_zookeeper(self._connect, lambda store: check(store, file))

    def begin(
        self, targets: Mapping[TopicPartition, Sequence[int]], throttle: ThrottlePlan, rate: int
    ) -> None:
        """Set the throttle if `rate` is at least 0, then request the moves."""

        async def work(store: ZkStore) -> None:
            if rate >= 0:
                await set_throttle(store, throttle, rate)
            await begin(store, targets)

        with_zookeeper(self._connect, work)

    def verify(self, file: ReassignmentFile) -> ZnodeVerification:
        """The progress of a file's moves."""
        return with_zookeeper(self._connect, lambda store: verify(store, file))

    def clear_throttles(self, brokers: Iterable[int], topics: Iterable[str]) -> None:
        """Delete the throttles of brokers and topics."""
        with_zookeeper(self._connect, lambda store: clear_throttles(store, brokers, topics))


async def assignments(
    store: ZkStore, topics: Iterable[str]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of the partitions of topics. Topics that do not exist are left out."""
    found = {}
    for name in sorted(set(topics)):
        topic = await store.topics.get(name)
        if topic is not None:
            for index, replicas in sorted(topic.assignment.items()):
                found[TopicPartition(name, index)] = replicas
    return found


async def live_brokers(store: ZkStore) -> list[BrokerPlace]:
    """The registered brokers, by id."""
    found = await store.brokers.get_all()
    return [BrokerPlace(broker_id, found[broker_id].broker.rack) for broker_id in sorted(found)]


async def check(store: ZkStore, file: ReassignmentFile) -> dict[TopicPartition, tuple[int, ...]]:
    """Check that a file can be executed. Returns the current replicas of its partitions.

    Raises:
        ReassignmentFailed: the file has log directories, a partition or broker does not exist, or
            moves are running.
    """
    if file.log_dirs:
        raise ReassignmentFailed(NEEDS_BROKERS)
    current = await assignments(store, [tp.topic for tp in file.targets])
    absent = [tp for tp in file.targets if tp not in current]
    if absent:
        raise ReassignmentFailed(
            "The proposed assignment contains non-existent partitions: "
            + ", ".join(map(str, absent))
        )
    live = {broker.broker_id for broker in await live_brokers(store)}
    unknown = sorted({b for replicas in file.targets.values() for b in replicas} - live)
    if unknown:
        raise ReassignmentFailed(
            "The proposed assignment contains non-existent brokerIDs: "
            + ",".join(map(str, unknown))
        )
    if await store.requests.reassignments():
        raise ReassignmentFailed(ALREADY_RUNNING)
    return {tp: current[tp] for tp in file.targets}


async def begin(store: ZkStore, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Request the moves.

    Raises:
        ReassignmentFailed: other moves are requested already.
    """
    try:
        await store.requests.request_reassignments(targets)
    except NodeExists:
        raise ReassignmentFailed(ALREADY_RUNNING) from None


async def set_throttle(store: ZkStore, plan: ThrottlePlan, rate: int) -> None:
    """Throttle copies between brokers, `rate` in bytes a second."""
    for topic, lists in plan.topics.items():
        await _change(store, "topics", topic, lists)
    for broker_id in plan.brokers:
        rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
        await _change(store, "brokers", str(broker_id), rates)


async def clear_throttles(store: ZkStore, brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Delete the throttles of brokers and topics. Configs without throttles are not written."""
    for broker_id in brokers:
        await _change(store, "brokers", str(broker_id), dict.fromkeys(BROKER_RATES))
    for topic in topics:
        await _change(store, "topics", topic, dict.fromkeys(TOPIC_REPLICAS))


async def verify(store: ZkStore, file: ReassignmentFile) -> ZnodeVerification:
    """The progress of a file's moves.

    Raises:
        ReassignmentFailed: the file has log directories, which are not stored in ZooKeeper.
    """
    if file.log_dirs:
        raise ReassignmentFailed(NEEDS_BROKERS)
    running = await store.requests.reassignments()
    current = await assignments(store, [tp.topic for tp in file.targets])
    states = [
        state._replace(is_moving=state.partition in running)
        for state in partition_states(file.targets, current, {})
    ]
    live = [broker.broker_id for broker in await live_brokers(store)]
    return ZnodeVerification(states, bool(running), live)


async def _change(store: ZkStore, kind: str, name: str, values: Mapping[str, str | None]) -> None:
    """Set keys, or delete those with value None. Notify the brokers if anything changed."""

    async def attempt() -> None:
        before, version = await store.configs.get_versioned(kind, name)
        after = {k: v for k, v in {**before, **values}.items() if v is not None}
        if after != before:
            await store.configs.set(kind, name, after, version)

    await until_unchanged(attempt)
