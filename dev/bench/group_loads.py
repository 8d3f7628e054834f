"""The loads of `scripts/bench --kafka` on coordinators: members that join and rebalance, commits of
many groups, share groups, transactions.

Members are connections that send what a client sends, and nothing else: a hundred clients would
take more of the machine than the broker. A member that waits sends a heartbeat every 50 ms.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka

from dev.bench.loads import LIMIT_S
from kafkapy.admin.configs import Resource, ResourceType, incremental_alter_configs
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.client.group_offsets import commit_request
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import consumer_group_heartbeat as beats
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkapy.protocol.schema import Message

Figures = dict[str, float]

_PAUSE_S: Final = 0.05
_SESSION_MS: Final = 30_000
_REBALANCE_MS: Final = 60_000
_IN_FLIGHT: Final = 20


class _Connection:
    """One member's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, servers: str) -> _Connection:
        host, _, port = servers.partition(",")[0].rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, version: int, message: Message) -> None:
        self._writer.write(encode_request(message, version, 0, "bench"))

    async def receive(self, version: int, message: Message) -> Any:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        return decode_response(response_class(message.API_KEY), version, frame)[1]

    async def ask(self, version: int, message: Message) -> Any:
        self.send(version, message)
        return await self.receive(version, message)

    def close(self) -> None:
        self._writer.close()


class _ClassicGroup:
    """Members of the classic protocol, of a group named as its topic. `sizes`: the members of each
    generation.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.generations: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self._servers = servers
        self._group = topic

    async def member(self, number: int) -> None:
        """Join, and rejoin whenever the group rebalances."""
        connection = await _Connection.open(self._servers)
        member_id = ""
        while True:
            joined = await connection.ask(5, _join_group(self._group, member_id))
            member_id = joined.member_id
            if joined.error_code != ErrorCode.NONE:
                continue  # the id is required first
            generation = joined.generation_id
            assignments = []
            if joined.leader == member_id:
                self.sizes[generation] = len(joined.members)
                assignments = [
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"mine")
                    for each in joined.members
                ]
            sync = SyncGroupRequest(
                group_id=self._group, generation_id=generation, member_id=member_id,
                assignments=assignments,
            )  # fmt: skip
            synced = await connection.ask(3, sync)
            if synced.error_code != ErrorCode.NONE:
                continue
            self.generations[number] = generation
            beat = HeartbeatRequest(
                group_id=self._group, generation_id=generation, member_id=member_id
            )
            while (await connection.ask(3, beat)).error_code == ErrorCode.NONE:
                await asyncio.sleep(_PAUSE_S)

    def is_settled(self, count: int) -> bool:
        """Whether `count` members are in one generation."""
        known = set(self.generations.values())
        return len(self.generations) == count and len(known) == 1 and (
            self.sizes.get(known.pop()) == count
        )  # fmt: skip


def _join_group(group: str, member_id: str) -> JoinGroupRequest:
    offered = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")
    return JoinGroupRequest(
        group_id=group, session_timeout_ms=_SESSION_MS, rebalance_timeout_ms=_REBALANCE_MS,
        member_id=member_id, protocol_type="consumer", protocols=[offered],
    )  # fmt: skip


class _ConsumerGroup:
    """Members of the consumer protocol, of a group named as its topic."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.epochs: dict[int, int] = {}
        self.owned: dict[int, list[beats.TopicPartitions]] = {}
        self._servers = servers
        self._topic = topic
        self._partitions = partitions

    async def member(self, number: int) -> None:
        """Join, and take and give what the coordinator says."""
        connection = await _Connection.open(self._servers)
        epoch = 0
        owned: list[beats.TopicPartitions] = []
        while True:
            beat = beats.ConsumerGroupHeartbeatRequest(
                group_id=self._topic, member_id=f"member-{number}", member_epoch=epoch,
                rebalance_timeout_ms=_REBALANCE_MS if epoch == 0 else -1,
                subscribed_topic_names=[self._topic] if epoch == 0 else None,
                topic_partitions=owned,
            )  # fmt: skip
            answer = await connection.ask(1, beat)
            code = ErrorCode(answer.error_code)
            if code.retriable:  # the coordinator begins
                await asyncio.sleep(_PAUSE_S)
                continue
            assert code is ErrorCode.NONE, answer.error_message
            epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = [
                    beats.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions)
                    for row in answer.assignment.topic_partitions
                ]
            self.epochs[number], self.owned[number] = epoch, owned
            if answer.assignment is None:
                await asyncio.sleep(_PAUSE_S)

    def is_settled(self, count: int) -> bool:
        """Whether `count` members of one epoch own all partitions."""
        shares = [sum(len(row.partitions) for row in rows) for rows in self.owned.values()]
        return (
            len(self.epochs) == count
            and len(set(self.epochs.values())) == 1
            and sum(shares) == self._partitions
            and max(shares) - min(shares) <= 1
        )


_GROUPS: Final[dict[str, Callable[..., _ClassicGroup | _ConsumerGroup]]] = {
    "classic": _ClassicGroup,
    "consumer": _ConsumerGroup,
}


def rebalances(servers: str, topic: str, protocol: str, members: int, partitions: int) -> Figures:
    """Seconds until all members have joined, and until one more has its share."""
    _coordinate(servers, topic)
    return asyncio.run(_rebalances(_GROUPS[protocol](servers, topic, partitions), members))


async def _rebalances(group: _ClassicGroup | _ConsumerGroup, members: int) -> Figures:
    tasks: list[asyncio.Task[None]] = []

    async def settle(count: int) -> float:
        started = time.perf_counter()
        tasks.extend(asyncio.create_task(group.member(n)) for n in range(len(tasks), count))
        while not group.is_settled(count):
            assert time.perf_counter() - started < LIMIT_S, f"{count} members do not settle"
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.001)
        return time.perf_counter() - started

    found = {"join": await settle(members), "rebalance": await settle(members + 1)}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def commits(servers: str, topic: str, groups: int, seconds: float) -> Figures:
    """Commits/s of one connection, each of another group, so many in flight."""
    _coordinate(servers, "group-0")
    return asyncio.run(_commits(servers, topic, groups, seconds))


async def _commits(servers: str, topic: str, groups: int, seconds: float) -> Figures:
    connection = await _Connection.open(servers)
    offsets = {TopicPartition(topic, 0): 1}
    requests = [commit_request(f"group-{number}", offsets) for number in range(groups)]
    for message in requests:  # the coordinator of each begins, and knows the group
        while _code(await connection.ask(8, message)).retriable:
            await asyncio.sleep(_PAUSE_S)
    answered, sent = 0, 0
    started = time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        while sent - answered < _IN_FLIGHT:
            connection.send(8, requests[sent % groups])
            sent += 1
        code = _code(await connection.receive(8, requests[0]))
        assert code is ErrorCode.NONE, code.name
        answered += 1
    connection.close()
    return {"rate": answered / passed}


def shared(servers: str, topic: str, records: int) -> Figures:
    """Records/s of one librdkafka member of a share group: each poll accepts those before it."""
    with Cluster(servers) as cluster:
        resource = Resource(ResourceType.GROUP, topic)
        incremental_alter_configs(cluster, resource, {"share.auto.offset.reset": "earliest"}, ())
    consumer = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": servers, "group.id": topic, "log_level": 2}
    )
    consumer.subscribe([topic])
    first = count = 0
    begun = started = time.perf_counter()
    while count < records:
        assert time.perf_counter() - begun < LIMIT_S, f"{count} of {records} records"
        batch = len(consumer.poll(1.0))
        if not count:
            started, first = time.perf_counter(), batch
        count += batch
    passed = time.perf_counter() - started
    consumer.close()
    return {"rate": (count - first) / passed}


def _code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def transactions(servers: str, topic: str, seconds: float) -> Figures:
    """Transactions/s of one librdkafka producer, one record each."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": "bench", "linger.ms": 0, "log_level": 2}
    )
    producer.init_transactions(LIMIT_S)
    count = 0
    started = time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        producer.begin_transaction()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.commit_transaction(LIMIT_S)
        count += 1
    return {"rate": count / passed}


def _coordinate(servers: str, group: str) -> None:
    """Create the internal topic, and wait for its leader."""
    with Cluster(servers) as cluster:
        cluster.retrying(lambda: find_coordinator(cluster, group))
