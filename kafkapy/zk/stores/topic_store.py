"""Topics and their partition states in ZooKeeper.

Any broker may create and expand topics, by plain writes. Only the controller writes partition
states, deletions and reassignments; these writes are fenced.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import LeaderAndIsr, TopicDescription
from kafkapy.common.topic_partition import TopicPartition, is_topic_name
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.fencing import Fence, fenced_multi, fenced_multis
from kafkapy.zk.stores.stray_children import StrayChildren
from kafkapy.zk.stores.znodes import (
    ZnodeError,
    decode_brokers_zxid,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    Get,
    NodeExists,
    NoNode,
    Op,
    OpResult,
    SetData,
    Watch,
    Znode,
    ZnodeStat,
    ZooKeeper,
    ZooKeeperError,
)

_log = logging.getLogger("kafka.zk.KafkaZkClient")

# Nodes in one transaction: well below ZooKeeper's 1 MiB frame.
_BATCH_NODES: Final = 500
# Fewer, because one node that changed meanwhile makes its whole batch fail.
_BATCH_STATES: Final = 100


class StateWrites(NamedTuple):
    """Outcomes of conditional state writes, by partition."""

    written: dict[TopicPartition, LeaderAndIsr]
    retry: list[TopicPartition]
    failed: dict[TopicPartition, ZooKeeperError]


class TopicStore:
    """Topics, their assignments and their partitions' leaders."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self._stray = StrayChildren(paths.TOPICS, "topic", is_topic_name)

    async def names(self, watch: Watch | None = None) -> list[str]:
        """Every topic, sorted. A child with an invalid topic name is logged and left out."""
        return self._stray.valid_names(await self._zk.children(paths.TOPICS, watch))

    async def deleted(self, topics: Iterable[str]) -> set[str]:
        """The topics that have no znode any more. This broker's ZooKeeper server may lag, so each
        topic that it lacks is checked with a write, which ZooKeeper's leader answers.
        """
        deleted, existing = set(), set(await self.names())
        for topic in topics:
            if topic not in existing:
                try:
                    await self._zk.multi([Check(paths.topic(topic), ANY_VERSION)])
                except NoNode:
                    deleted.add(topic)
        return deleted

    async def exists(self, topic: str) -> bool:
        """Whether the topic has a znode."""
        return await self._zk.exists(paths.topic(topic)) is not None

    async def get(self, topic: str, watch: Watch | None = None) -> TopicDescription | None:
        """A topic's id and assignment."""
        try:
            return decode_topic(topic, (await self._zk.get(paths.topic(topic), watch)).data)
        except NoNode:
            return None

    async def get_all(
        self, topics: Sequence[str], watches: Mapping[str, Watch]
    ) -> dict[str, TopicDescription]:
        """The existing topics, in the given order. `watches` has a watch for each topic to follow.

        A topic with an unreadable znode is logged and left out.
        """
        requests = [Get(paths.topic(topic), watches.get(topic)) for topic in topics]
        answers = await self._zk.pipeline(requests)
        found = {}
        for topic, node in zip(topics, _nodes(answers), strict=True):
            if node is None:
                continue
            try:
                found[topic] = decode_topic(topic, node.data)
            except ZnodeError as error:
                _log.error("Topic %s is left alone: %s", topic, error)
        return found

    async def create(self, topic: TopicDescription, before: Sequence[Op] = ()) -> None:
        """Create a topic's znode, in one transaction with the operations `before`.

        After a lost answer this is sent again, and refused because the topic exists. A topic with
        this id and assignment then counts as created.

        Raises:
            NodeExists: the topic exists.
            ZooKeeperError: the error of the first failing operation.
        """
        path, data = paths.topic(topic.topic), encode_topic(topic)
        try:
            await self._zk.multi([*before, Create(path, data)])
        except (BadVersion, NodeExists):
            if topic.topic_id.is_zero or await self._content(path) != data:
                raise

    async def _content(self, path: str) -> bytes | None:
        try:
            return (await self._zk.get(path)).data
        except NoNode:
            return None

    async def update(
        self, topic: TopicDescription, expected: TopicDescription | None = None
    ) -> None:
        """Replace a topic's assignment for an admin client (partition expansion).

        Raises:
            NoNode: the topic does not exist.
            BadVersion: the assignment is not `expected` any more. Kafka overwrites it, even if a
                reassignment wrote it.
        """
        path, data = paths.topic(topic.topic), encode_topic(topic)
        node = await self._zk.get(path)
        if expected is not None and decode_topic(topic.topic, node.data) != expected:
            raise BadVersion(path)
        try:
            await self._zk.set(path, data, node.stat.version)
        except BadVersion:
            # After a lost answer the write is sent again; the first attempt changed the version.
            if await self._content(path) != data:
                raise

    async def update_as_controller(self, topic: TopicDescription, fence: Fence) -> None:
        """Replace a topic's assignment or id. Raises ControllerMoved or NoNode."""
        await fenced_multi(
            self._zk, fence, [SetData(paths.topic(topic.topic), encode_topic(topic))]
        )

    async def reassign(
        self,
        partition: TopicPartition,
        replicas: tuple[int, ...],
        adding: tuple[int, ...],
        removing: tuple[int, ...],
        fence: Fence,
    ) -> None:
        """Write one partition's replicas only, since an admin client may be adding partitions.

        Raises:
            ControllerMoved: there is a newer controller.
            NoNode: the topic does not exist.
        """
        path, index = paths.topic(partition.topic), partition.partition
        while True:
            node = await self._zk.get(path)
            topic = decode_topic(partition.topic, node.data)
            moved = replace(
                topic,
                assignment={**topic.assignment, index: replicas},
                adding_replicas={**topic.adding_replicas, index: adding},
                removing_replicas={**topic.removing_replicas, index: removing},
            )
            try:
                await fenced_multi(
                    self._zk, fence, [SetData(path, encode_topic(moved), node.stat.version)]
                )
                return
            except BadVersion:
                continue

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The states of the partitions that have one. An unreadable state is logged and left
        out.
        """
        found = await self.states_and_zxids(partitions)
        return {partition: state for partition, (state, _) in found.items()}

    async def states_and_zxids(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[LeaderAndIsr, int]]:
        """As `states`, each with the zxid up to which its writer had handled broker registrations.

        The zxid is at most that of the write, and equals it if the state does not contain one. It
        is comparable with broker epochs.
        """
        state_paths = [paths.partition_state(*partition) for partition in partitions]
        answers = await self._zk.pipeline([Get(path) for path in state_paths])
        found = {}
        for partition, path, node in zip(partitions, state_paths, _nodes(answers), strict=True):
            if node is None:
                continue
            try:
                state = decode_partition_state(path, node.data, node.stat.version)
                zxid, brokers_zxid = node.stat.mzxid, decode_brokers_zxid(path, node.data)
                found[partition] = state, zxid if brokers_zxid is None else min(zxid, brokers_zxid)
            except ZnodeError as error:
                _log.error("Partition %s has no usable state: %s", partition, error)
        return found

    async def create_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: Fence
    ) -> dict[TopicPartition, ZooKeeperError]:
        """Create state nodes with their parents. Returns the partitions that failed, with the
        error.

        Raises:
            ControllerMoved: there is a newer controller.
        """
        await self._create_parents(states, fence)
        groups = list(_groups_by_topic(states))
        answers = await fenced_multis(
            self._zk, fence, [_create_ops(group, states, fence) for group in groups]
        )
        failed: dict[TopicPartition, ZooKeeperError] = {}
        for group, answer in zip(groups, answers, strict=True):
            if isinstance(answer, ZooKeeperError):
                failed |= await self._create_one_by_one(group, states, fence)
        return failed

    async def update_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: Fence
    ) -> StateWrites:
        """Write each state if its `partition_epoch` is still the node's version.

        Many states share a transaction. Those of a failed transaction are written one by one.

        Raises:
            ControllerMoved: there is a newer controller.
        """
        outcome = StateWrites({}, [], {})
        partitions = list(states)
        groups = [
            partitions[start : start + _BATCH_STATES]
            for start in range(0, len(partitions), _BATCH_STATES)
        ]
        answers = await fenced_multis(
            self._zk, fence, [[_update_op(p, states[p], fence) for p in group] for group in groups]
        )
        individual: list[TopicPartition] = []
        for group, answer in zip(groups, answers, strict=True):
            if isinstance(answer, ZooKeeperError) and len(group) > 1:
                individual += group
            else:
                _record_outcome(outcome, states, group, answer)
        ops = [[_update_op(p, states[p], fence)] for p in individual]
        answers = await fenced_multis(self._zk, fence, ops)
        for partition, answer in zip(individual, answers, strict=True):
            _record_outcome(outcome, states, [partition], answer)
        expected = {
            p: replace(states[p], partition_epoch=states[p].partition_epoch + 1)
            for p in outcome.retry
        }
        for partition in await self._already_applied(expected):
            outcome.written[partition] = expected[partition]
            outcome.retry.remove(partition)
        return outcome

    async def _already_applied(
        self, expected: Mapping[TopicPartition, LeaderAndIsr]
    ) -> list[TopicPartition]:
        """The partitions whose refused write was applied by an earlier attempt. After a lost answer
        a write is sent again, and refused because the first attempt changed the version. In Kafka,
        the leader then waits forever.
        """
        found = await self.states(list(expected)) if expected else {}
        return [partition for partition, state in found.items() if state == expected[partition]]

    async def delete(self, topic: str, fence: Fence) -> None:
        """Delete a topic's config, its znodes and its deletion request, in this order.

        If the controller ends between two steps, the next one repeats the deletion while the
        topic's znode exists. Kafka deletes the config after the topic: it may be left behind, for
        the next topic of that name.

        Raises:
            ControllerMoved: there is a newer controller.
        """
        for path in (
            paths.config("topics", topic),
            paths.topic(topic),
            paths.delete_topic(topic),
        ):
            while subtree := await self._subtree(path):
                for start in range(0, len(subtree), _BATCH_NODES):
                    batch = [Delete(node) for node in subtree[start : start + _BATCH_NODES]]
                    # After a lost answer a deletion is sent again; its nodes do not exist any more.
                    with contextlib.suppress(NoNode):
                        await fenced_multi(self._zk, fence, batch)

    async def _subtree(self, path: str) -> list[str]:
        """`path` and all nodes below it, children first; empty if it does not exist."""
        try:
            names = await self._zk.children(path)
        except NoNode:
            return []
        found: list[str] = []
        for name in names:
            found += await self._subtree(f"{path}/{name}")
        return [*found, path]

    async def _create_parents(self, partitions: Iterable[TopicPartition], fence: Fence) -> None:
        topics = sorted({partition.topic for partition in partitions})
        answers = await fenced_multis(
            self._zk, fence, [[Create(paths.partitions(topic), b"")] for topic in topics]
        )
        for answer in answers:
            # A topic without its own node fails again, by partition, when its states are created.
            if isinstance(answer, ZooKeeperError) and not isinstance(answer, NodeExists | NoNode):
                raise answer

    async def _create_one_by_one(
        self,
        partitions: Sequence[TopicPartition],
        states: Mapping[TopicPartition, LeaderAndIsr],
        fence: Fence,
    ) -> dict[TopicPartition, ZooKeeperError]:
        """Create nodes one by one, for a batch in which some exist already."""
        await fenced_multis(
            self._zk,
            fence,
            [[Create(paths.partition(*partition), b"")] for partition in partitions],
        )
        answers = await fenced_multis(
            self._zk,
            fence,
            [
                [Create(paths.partition_state(*p), _encode_state(states[p], fence))]
                for p in partitions
            ],
        )
        failed = {
            partition: answer
            for partition, answer in zip(partitions, answers, strict=True)
            if isinstance(answer, ZooKeeperError)
        }
        existing = [p for p, error in failed.items() if isinstance(error, NodeExists)]
        expected = {p: replace(states[p], partition_epoch=0) for p in existing}
        for partition in await self._already_applied(expected):
            del failed[partition]
        return failed


def _nodes(answers: Iterable[object]) -> Iterator[Znode | None]:
    for answer in answers:
        if isinstance(answer, NoNode):
            yield None
        elif isinstance(answer, ZooKeeperError):
            raise answer
        else:
            assert isinstance(answer, Znode), answer
            yield answer


def _update_op(partition: TopicPartition, state: LeaderAndIsr, fence: Fence) -> Op:
    path = paths.partition_state(*partition)
    return SetData(path, _encode_state(state, fence), state.partition_epoch)


def _encode_state(state: LeaderAndIsr, fence: Fence) -> bytes:
    return encode_partition_state(state, fence.brokers_zxid)


def _record_outcome(
    outcome: StateWrites,
    states: Mapping[TopicPartition, LeaderAndIsr],
    group: Sequence[TopicPartition],
    answer: Sequence[OpResult] | ZooKeeperError,
) -> None:
    """Note the outcome of one transaction for its partitions."""
    if isinstance(answer, BadVersion):
        outcome.retry.extend(group)
    elif isinstance(answer, ZooKeeperError):
        outcome.failed.update(dict.fromkeys(group, answer))
    else:
        for partition, stat in zip(group, answer, strict=True):
            assert isinstance(stat, ZnodeStat), stat
            outcome.written[partition] = replace(states[partition], partition_epoch=stat.version)


def _groups_by_topic(partitions: Iterable[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """Group partitions by topic, so that a conflict affects no other topic's batch."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition)
    size = _BATCH_NODES // 2
    for group in by_topic.values():
        for start in range(0, len(group), size):
            yield group[start : start + size]


def _create_ops(
    partitions: Sequence[TopicPartition],
    states: Mapping[TopicPartition, LeaderAndIsr],
    fence: Fence,
) -> list[Op]:
    ops: list[Op] = []
    for partition in partitions:
        ops.append(Create(paths.partition(*partition), b""))
        state = _encode_state(states[partition], fence)
        ops.append(Create(paths.partition_state(*partition), state))
    return ops
