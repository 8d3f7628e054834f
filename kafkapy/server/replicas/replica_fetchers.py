"""Replica fetchers: one task for each leader and fetcher id, as `num.replica.fetchers` sets.

As Kafka's `ReplicaFetcherManager`. `replication.follower_fetcher` interprets responses; this module
sends and receives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import LogDirFailure
from kafkapy.common.lasting_work import keep_running
from kafkapy.common.topic_partition import TopicPartition, java_string_hash
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkapy.replication.follower_fetcher import FollowerFetcher
from kafkapy.replication.follower_session import FollowerFetch
from kafkapy.replication.partition import Partition
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.replicas.follower_calls import FollowerCalls, LeaderAnswer, to_leader_answer
from kafkapy.server.security.node_security import PLAINTEXT, NodeSecurity

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.ReplicaFetcherManager")

_LIST_OFFSETS_VERSION: Final = 9
_LATEST, _EARLIEST = -1, -2


def fetcher_id(topic_partition: TopicPartition, fetchers: int) -> int:
    """The id of the fetcher that fetches a partition (`AbstractFetcherManager.getFetcherId`)."""
    mixed = (31 * java_string_hash(topic_partition.topic) + topic_partition.partition) & 0xFFFFFFFF
    signed = mixed - (1 << 32) if mixed >= 1 << 31 else mixed
    return (0 if signed == -(1 << 31) else abs(signed)) % fetchers


class ReplicaFetchers:
    """All fetchers of this broker. `broker_epoch()` and `endpoint(id)` are called when needed."""

    def __init__(
        self,
        config: KafkaConfig,
        replicas: ReplicaManager,
        clock: Clock,
        broker_epoch: Callable[[], int],
        endpoint: Callable[[int], Endpoint | None],
        security: NodeSecurity = PLAINTEXT,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._endpoint = endpoint
        self._security = security
        self._fetchers: dict[tuple[int, int], _FetcherTask] = {}
        self._fetcher_keys: dict[TopicPartition, tuple[int, int]] = {}
        self._waiting: dict[TopicPartition, Partition] = {}

    def follow(self, partition: Partition) -> None:
        """Start to fetch a partition from its leader, or wait until the leader is known."""
        topic_partition = partition.topic_partition
        self.unfollow(topic_partition)
        if not partition.is_served:  # its disk failed before, in the same request
            return
        endpoint = self._endpoint(partition.leader_id)
        if endpoint is None:
            logger.info(
                "%s waits for its leader %d to be known", topic_partition, partition.leader_id
            )
            self._waiting[topic_partition] = partition
            return
        fetchers = self._config.get_int("num.replica.fetchers")
        key = (partition.leader_id, fetcher_id(topic_partition, fetchers))
        task = self._fetchers.get(key)
        if task is not None and task.endpoint != endpoint:
            self._restart(task)
            task = self._fetchers.get(key)
        if task is None:
            task = _FetcherTask(
                self._config,
                self._replicas,
                self._clock,
                self._broker_epoch,
                key,
                endpoint,
                self._security,
            )
            self._fetchers[key] = task
        self._fetcher_keys[topic_partition] = key
        task.follow(partition)

    def unfollow(self, topic_partition: TopicPartition) -> None:
        """Stop fetching a partition. A fetcher without partitions ends."""
        self._waiting.pop(topic_partition, None)
        key = self._fetcher_keys.pop(topic_partition, None)
        if key is None:
            return
        task = self._fetchers[key]
        task.fetcher.unfollow(topic_partition)
        if not task.fetcher:
            del self._fetchers[key]
            task.stop()

    def metadata_changed(self) -> None:
        """Start to follow leaders whose address is known now: LeaderAndIsr may come before
        UpdateMetadata.
        """
        for partition in list(self._waiting.values()):
            if self._endpoint(partition.leader_id) is not None:
                self.follow(partition)

    def _restart(self, task: _FetcherTask) -> None:
        """Connect to a leader at its new address."""
        partitions = task.fetcher.partitions
        for partition in partitions:
            self.unfollow(partition.topic_partition)
        for partition in partitions:
            self.follow(partition)

    def stop(self) -> None:
        """End all fetchers."""
        for task in self._fetchers.values():
            task.stop()
        self._fetchers.clear()
        self._fetcher_keys.clear()
        self._waiting.clear()

    @property
    def max_lag(self) -> int:
        """The largest known lag of a followed partition, in records."""
        return max((task.fetcher.max_lag for task in self._fetchers.values()), default=0)


class _FetcherTask:
    """One connection to a leader, and its fetch loop."""

    def __init__(
        self,
        config: KafkaConfig,
        replicas: ReplicaManager,
        clock: Clock,
        broker_epoch: Callable[[], int],
        key: tuple[int, int],
        endpoint: Endpoint,
        security: NodeSecurity,
    ) -> None:
        get = config.get_int
        self.endpoint = endpoint
        self.fetcher = FollowerFetcher(
            key[0],
            get("replica.fetch.max.bytes"),
            get("replica.fetch.backoff.ms"),
            replicas.quotas.follower,
            replicas.log_dir_failed,
        )
        self._replicas = replicas
        self._clock = clock
        self._wake = asyncio.Event()
        self._last_failure = ""
        self._pause: asyncio.Future[None]  # done when a response sends no next fetch
        self._client = NodeClient(
            endpoint.host,
            endpoint.port,
            f"broker-{replicas.broker_id}-fetcher-{key[1]}",
            request_timeout_ms=get("replica.socket.timeout.ms"),
            security=security,
            receive_buffer_bytes=get("replica.socket.receive.buffer.bytes"),
        )
        self._calls = FollowerCalls(config, self._client, replicas.broker_id, broker_epoch)
        work = keep_running("A replica fetcher", self._run, logger, self._on_failure)
        self._task = asyncio.get_running_loop().create_task(work)

    def follow(self, partition: Partition) -> None:
        self.fetcher.follow(partition)
        self._wake.set()

    def stop(self) -> None:
        self._task.cancel()
        self._client.close()

    def _on_failure(self) -> None:
        self.fetcher.on_unreachable(self._clock.monotonic_ms())

    async def _run(self) -> None:
        while True:
            if self.fetcher.out_of_range:
                await self._fetch_leader_offsets()
            self._pause = asyncio.get_running_loop().create_future()
            if self._fetch():
                await self._pause
            else:
                await self._wait()

    def _fetch(self) -> bool:
        """Send the next fetch; False if there is nothing to fetch now."""
        fetch = self.fetcher.next_fetch(self._clock.monotonic_ms())
        if fetch is None:
            return False
        self._calls.send(fetch, partial(self._on_response, fetch))
        return True

    def _on_response(self, fetch: FollowerFetch, outcome: Any) -> None:
        """Apply a response and send the next fetch. The task runs only if there is no next
        fetch.
        """
        pause = self._pause
        if pause.done():  # stopped meanwhile
            return
        try:
            if isinstance(outcome, NodeUnavailable):
                self._log_failure(str(outcome))
                self._on_failure()
            else:
                self._last_failure = ""
                self._process_response(fetch, to_leader_answer(fetch, outcome))
                if pause.done():  # the response stopped this fetcher, for example by a disk failure
                    return
                if not self.fetcher.out_of_range and self._fetch():
                    return
            if not pause.done():  # a disk failed at the next fetch
                pause.set_result(None)
        except Exception as fault:
            if not pause.done():
                pause.set_exception(fault)  # the task logs it
            raise  # ends the connection

    def _log_failure(self, reason: str) -> None:
        logger.log(
            logging.INFO if reason == self._last_failure else logging.WARNING,
            "Fetching from broker %d failed: %s",
            self.fetcher.leader_id,
            reason,
        )
        self._last_failure = reason

    async def _wait(self) -> None:
        """Wait until a partition is added, or a delayed one is due."""
        self._wake.clear()
        due_ms = self.fetcher.next_due_ms()
        delay_s = None
        if due_ms is not None:
            delay_s = max(0, due_ms - self._clock.monotonic_ms()) / 1000
        try:
            await asyncio.wait_for(self._wake.wait(), delay_s)
        except TimeoutError:
            return

    def _process_response(self, fetch: FollowerFetch, leader_answer: LeaderAnswer) -> None:
        if len(leader_answer.rows) > 1:
            # After a failover each of thousands of partitions may begin a leader epoch.
            with self._replicas.log_manager.group_commit():
                changed = self._apply(fetch, leader_answer)
        else:
            changed = self._apply(fetch, leader_answer)
        for partition in changed:
            self._replicas.check_delayed_requests(partition)

    def _apply(self, fetch: FollowerFetch, leader_answer: LeaderAnswer) -> list[Partition]:
        now_ms, time_ms = self._clock.monotonic_ms(), self._clock.time_ms()
        return self.fetcher.on_response(
            fetch,
            leader_answer.error,
            leader_answer.session_id,
            leader_answer.rows,
            now_ms,
            time_ms,
        )

    async def _fetch_leader_offsets(self) -> None:
        for partition in self.fetcher.out_of_range:
            key = partition.topic_partition
            try:
                latest = await self._leader_offset(partition, _LATEST)
                earliest = await self._leader_offset(partition, _EARLIEST)
            except NodeUnavailable:
                latest = earliest = None
            now_ms = self._clock.monotonic_ms()
            try:
                if latest is None or earliest is None:
                    self.fetcher.on_leader_offsets_failed(key, now_ms)
                else:
                    self.fetcher.on_leader_offsets(key, earliest, latest, now_ms)
            except LogDirFailure as failure:
                self._replicas.log_dir_failed(failure)

    async def _leader_offset(self, partition: Partition, timestamp: int) -> int | None:
        topic, index = partition.topic_partition
        request = ListOffsetsRequest(
            replica_id=self._replicas.broker_id,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=partition.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        response = await self._client.request(request, _LIST_OFFSETS_VERSION)
        [row] = response.topics[0].partitions
        return None if row.error_code else int(row.offset)
