"""Requests and notifications in ZooKeeper for the controller, which deletes them when done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.fencing import Fence, create_recursive, fenced_multi, fenced_multis
from kafkapy.zk.stores.znodes import (
    ZnodeError,
    decode_log_dir_event,
    decode_partitions,
    decode_reassignments,
    encode_log_dir_event,
    encode_partitions,
    encode_reassignments,
)
from kafkapy.zk.zookeeper import (
    BadVersion,
    CreateMode,
    Delete,
    Get,
    NoNode,
    SetData,
    Watch,
    Znode,
    ZooKeeper,
    ZooKeeperError,
)

_T = TypeVar("_T")

_log = logging.getLogger("kafka.zk.KafkaZkClient")


class RequestStore:
    """Topic deletions, reassignments, preferred elections, ISR changes, failed log directories."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def topic_deletions(self, watch: Watch | None = None) -> list[str]:
        """The topics queued for deletion, sorted."""
        return await self._zk.children(paths.DELETE_TOPICS, watch)

    async def is_queued_for_deletion(self, topic: str) -> bool:
        """Whether the topic's deletion was requested."""
        return await self._zk.exists(paths.delete_topic(topic)) is not None

    async def request_topic_deletion(self, topic: str) -> None:
        """Queue a topic for deletion. Raises NodeExists."""
        await create_recursive(self._zk, paths.delete_topic(topic))

    async def remove_topic_deletions(self, topics: Iterable[str], fence: Fence) -> None:
        """Remove deletion requests that are refused."""
        await self._remove([paths.delete_topic(topic) for topic in topics], fence)

    async def preferred_elections(self, watch: Watch | None = None) -> list[TopicPartition] | None:
        """The partitions of `/admin/preferred_replica_election`. The watch fires when the node is
        created.

        None if the node does not exist, or is unreadable, which is logged.
        """
        path = paths.PREFERRED_REPLICA_ELECTION
        if watch is not None:
            await self._zk.exists(path, watch)
        try:
            return decode_partitions(path, (await self._zk.get(path)).data)
        except NoNode:
            return None
        except ZnodeError as error:
            _log.error("Ignoring a preferred replica election: %s", error)
            return None

    async def request_preferred_elections(self, partitions: Iterable[TopicPartition]) -> None:
        """Request elections of preferred leaders. Raises NodeExists during earlier ones."""
        path = paths.PREFERRED_REPLICA_ELECTION
        await create_recursive(self._zk, path, encode_partitions(partitions))

    async def remove_preferred_elections(self, fence: Fence) -> None:
        """Delete `/admin/preferred_replica_election`."""
        await self._remove([paths.PREFERRED_REPLICA_ELECTION], fence)

    async def reassignments(
        self, watch: Watch | None = None
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """The target replicas in `/admin/reassign_partitions`. The watch fires when the node is
        created.

        An unreadable node is logged and left as it is.
        """
        path = paths.REASSIGN_PARTITIONS
        if watch is not None:
            await self._zk.exists(path, watch)
        try:
            return decode_reassignments((await self._zk.get(path)).data)
        except NoNode:
            return {}
        except ZnodeError as error:
            _log.error("Ignoring a partition reassignment: %s", error)
            return {}

    async def request_reassignments(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Request reassignments. Raises NodeExists during earlier ones."""
        await create_recursive(self._zk, paths.REASSIGN_PARTITIONS, encode_reassignments(targets))

    async def remove_reassignments(
        self, is_complete: Callable[[TopicPartition, tuple[int, ...]], bool], fence: Fence
    ) -> None:
        """Remove completed rows (partition, target) from `/admin/reassign_partitions`, and with the
        last one the node. A row that a tool adds meanwhile is kept.

        Raises:
            ControllerMoved: there is a newer controller.
        """
        path = paths.REASSIGN_PARTITIONS
        while True:
            try:
                node = await self._zk.get(path)
                targets = decode_reassignments(node.data)
            except (NoNode, ZnodeError):
                return
            remaining = {p: target for p, target in targets.items() if not is_complete(p, target)}
            if targets and len(remaining) == len(targets):
                return
            version = node.stat.version
            change = SetData(path, encode_reassignments(remaining), version) if remaining else None
            try:
                await fenced_multi(self._zk, fence, [change or Delete(path, version)])
                return
            except (BadVersion, NoNode):
                continue

    async def notify_log_dir_failure(self, broker_id: int) -> None:
        """Notify the controller of a failed log directory of this broker."""
        await self._zk.create(
            f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{paths.LOG_DIR_EVENT_PREFIX}",
            encode_log_dir_event(broker_id),
            CreateMode.PERSISTENT_SEQUENTIAL,
        )

    async def take_log_dir_events(self, fence: Fence, watch: Watch | None = None) -> list[int]:
        """Read and delete the notifications. Returns the brokers that lost a directory, sorted."""
        root = paths.LOG_DIR_EVENT_NOTIFICATION
        brokers = await self._take(root, fence, watch, lambda p, d: [decode_log_dir_event(p, d)])
        return sorted(set(brokers))

    async def take_isr_changes(
        self, fence: Fence, watch: Watch | None = None
    ) -> list[TopicPartition]:
        """Read and delete the notifications of leaders below inter.broker.protocol.version 2.7.
        Returns the changed partitions, sorted.
        """
        root = paths.ISR_CHANGE_NOTIFICATION
        return sorted(set(await self._take(root, fence, watch, decode_partitions)))

    async def _take(
        self,
        root: str,
        fence: Fence,
        watch: Watch | None,
        decode: Callable[[str, bytes], list[_T]],
    ) -> list[_T]:
        names = await self._zk.children(root, watch)
        node_paths = [f"{root}/{name}" for name in names]
        found: list[_T] = []
        for path, answer in zip(
            node_paths, await self._zk.pipeline([Get(p) for p in node_paths]), strict=True
        ):
            if isinstance(answer, Znode):
                try:
                    found += decode(path, answer.data)
                except ZnodeError as error:
                    _log.error("Ignoring a notification: %s", error)
        await self._remove(node_paths, fence)
        return found

    async def _remove(self, node_paths: Sequence[str], fence: Fence) -> None:
        answers = await fenced_multis(self._zk, fence, [[Delete(path)] for path in node_paths])
        for answer in answers:
            if isinstance(answer, ZooKeeperError) and not isinstance(answer, NoNode):
                raise answer
