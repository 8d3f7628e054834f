"""Curves of `scripts/bench --growth`: each grows one thing on a broker of its own."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from dev.bench import growth_meter as meter
from dev.bench import loads
from dev.bench.growth_log import SparseLog
from dev.bench.growth_meter import PROBE, Caller, Figures, Windows
from dev.bench.kafka_clients import idle_connection
from dev.bench.kafka_open_loop import VALUE_BYTES
from dev.bench.kafka_systems import Servers, System, running
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from kafkapy.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kafkapy.protocol.schema import Message
from tests.harness.processes.waiting import wait_until

QUIET = "quiet"
BIG = "big"
COMMITTED = 10
"""The number of partitions for which each group has committed offsets."""
WAIT_MS = 600_000
TOPIC_PARTITIONS = 1000
SETTINGS = {"log.retention.ms": "-1", "group.initial.rebalance.delay.ms": "0"}

Points = Iterator[tuple[int, Figures]]


class Curve(NamedTuple):
    """`grow` yields the figures at each size. `title` names what grows."""

    title: str
    full: tuple[int, ...]
    quick: tuple[int, ...]
    grow: Callable[[Path, Sequence[int], Windows], Points]


def encoded(message: Message, version: int) -> bytes:
    return encode_request(message, version, 1, "bench")


@contextmanager
def broker(directory: Path, partitions: int = 1) -> Iterator[Servers]:
    """kafkapy with a topic for the probes."""
    with running(System.KAFKAPY, directory, settings=SETTINGS) as servers:
        servers.create_topic(PROBE, partitions)
        yield servers


def one_topic() -> dict[str, bytes]:
    """A request whose answer always has the same size."""
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=PROBE)])
    return {"Metadata of one topic": encoded(wanted, 8)}


def partitions(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """Partitions in topics of 1,000, besides the probe topic."""
    yield from _partitions(directory, sizes, windows, TOPIC_PARTITIONS)


def topics(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """Topics of one partition each."""
    yield from _partitions(directory, sizes, windows, 1)


def _partitions(
    directory: Path, sizes: Sequence[int], windows: Windows, topic_partitions: int
) -> Points:
    every_topic = encoded(MetadataRequest(topics=None), 8)
    with broker(directory) as servers:
        made = 1
        for size in sizes:
            started = time.perf_counter()
            servers.create_partitions("bench", size, made, topic_partitions)
            created_s = time.perf_counter() - started
            figures = meter.observe(servers, one_topic(), windows)
            if size > made:
                figures["made, ms each"] = created_s / (size - made) * 1e3
            made = size
            caller = Caller(servers.bootstrap_servers)
            figures["Metadata of all topics: processor, ms"] = caller.processor_ms(
                every_topic, *servers.pids
            )
            caller.close()
            yield size, figures | meter.restart(servers)


def connections(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """Connections that have sent one request and are idle."""
    with broker(directory) as servers, ExitStack() as held:
        [process] = servers.brokers
        opened = 0
        for size in sizes:
            for _ in range(size - opened):
                held.enter_context(idle_connection("127.0.0.1", process.port))
            opened = size
            yield size, meter.observe(servers, one_topic(), windows)


def waiting_fetches(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """Consumers at the end of one partition, each waiting for the next record."""
    wake = loads.produce_request(QUIET, VALUE_BYTES, 1)
    with broker(directory) as servers, ExitStack() as held:
        servers.create_topic(QUIET)
        [process] = servers.brokers
        consumers: list[socket.socket] = []
        for offset, size in enumerate(sizes):
            for _ in range(size - len(consumers)):
                made = held.enter_context(idle_connection("127.0.0.1", process.port))
                consumers.append(made)
            for consumer in consumers:
                consumer.sendall(loads.fetch_request(QUIET, offset, max_wait_ms=WAIT_MS))
            figures = meter.observe(servers, one_topic(), windows)
            caller = Caller(servers.bootstrap_servers)
            started = time.perf_counter()
            caller.ms(wake)
            for consumer in consumers:
                length = struct.unpack(">i", consumer.recv(4, socket.MSG_WAITALL))[0]
                consumer.recv(length, socket.MSG_WAITALL)
            figures["one record until all have it, ms"] = (time.perf_counter() - started) * 1e3
            caller.close()
            yield size, figures


def groups(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """Groups of one member each, which has committed the offsets of ten partitions."""
    every_group = encoded(ListGroupsRequest(), 4)
    topic = OffsetFetchRequestTopic(name=PROBE, partition_indexes=list(range(COMMITTED)))
    fetched = encoded(OffsetFetchRequest(group_id="group-0", topics=[topic]), 5)
    with broker(directory, COMMITTED) as servers:
        until_coordinated(servers.bootstrap_servers)
        made = 0
        commit = b""
        for size in sizes:
            caller = Caller(servers.bootstrap_servers)
            for number in range(made, size):
                commit = join(caller, f"group-{number}")
            made = size
            asked = {"OffsetCommit": commit, "OffsetFetch": fetched}
            figures = meter.observe(servers, asked, windows)
            figures["ListGroups: processor, ms"] = caller.processor_ms(every_group, *servers.pids)
            caller.close()
            started = time.perf_counter()
            [process] = servers.brokers
            process.restart()
            until_loaded(servers.bootstrap_servers, every_group, size)
            figures["clean stop, start, all groups loaded, s"] = time.perf_counter() - started
            yield size, figures


def until_coordinated(servers: str) -> None:
    """Trigger the creation of the offsets topic, and wait until it has a leader."""
    caller = Caller(servers)
    request = encoded(FindCoordinatorRequest(key="group-0"), 2)
    wait_until(
        lambda: caller.answer(request, FindCoordinatorResponse, 2).error_code == 0, "a coordinator"
    )
    caller.close()


def until_loaded(servers: str, every_group: bytes, count: int) -> None:
    caller = Caller(servers)

    def loaded() -> bool:
        found = caller.answer(every_group, ListGroupsResponse, 4)
        return found.error_code == 0 and len(found.groups) == count

    wait_until(loaded, f"{count} groups loaded")
    caller.close()


def join(caller: Caller, group_id: str) -> bytes:
    """Join a group as its one member, sync and commit; returns the encoded OffsetCommit request."""
    # A subscription: version 0, one topic, no user data.
    subscription = struct.pack(">hih", 0, 1, len(PROBE)) + PROBE.encode() + struct.pack(">i", -1)
    joining = JoinGroupRequest(
        group_id=group_id, session_timeout_ms=1_800_000, rebalance_timeout_ms=60_000,
        member_id="", protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
    )  # fmt: skip
    joined = caller.answer(encoded(joining, 2), JoinGroupResponse, 2)
    assert joined.error_code == 0, joined
    member, generation = joined.member_id, joined.generation_id
    assignment = SyncGroupRequestAssignment(member_id=member, assignment=subscription)
    syncing = SyncGroupRequest(
        group_id=group_id, generation_id=generation, member_id=member, assignments=[assignment]
    )
    synced = caller.answer(encoded(syncing, 2), SyncGroupResponse, 2)
    assert synced.error_code == 0, synced
    rows = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=0, committed_metadata=""
        )
        for index in range(COMMITTED)
    ]
    commit = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=generation, member_id=member,
        topics=[OffsetCommitRequestTopic(name=PROBE, partitions=rows)],
    )  # fmt: skip
    request = encoded(commit, 6)
    committed = caller.answer(request, OffsetCommitResponse, 6)
    assert not any(row.error_code for row in committed.topics[0].partitions), committed
    return request


def log_size(directory: Path, sizes: Sequence[int], windows: Windows) -> Points:
    """One partition of `sizes` GiB, in segments of 1 GiB."""
    with broker(directory) as servers:
        servers.create_topic(BIG)
        [process] = servers.brokers
        log = SparseLog(directory / "logs-0" / f"{BIG}-0", int(time.time() * 1000) - 86_400_000)
        for size in sizes:
            process.stop()
            log.grow(size)
            started = time.perf_counter()
            process.start()
            meter.first_record(servers)
            start_s = time.perf_counter() - started
            caller = Caller(servers.bootstrap_servers)
            middle = log.end // 2
            by_time = time_request(log.timestamp(middle))
            started = time.perf_counter()
            found = caller.answer(by_time, ListOffsetsResponse, 1)
            first_ms = (time.perf_counter() - started) * 1e3
            assert found.topics[0].partitions[0].offset == middle, found
            caller.close()
            asked = {
                "fetch 1 MiB, at the start": loads.fetch_request(BIG, 0),
                "... in the middle": loads.fetch_request(BIG, middle),
                "... at the end": loads.fetch_request(BIG, log.end - 1),
                "ListOffsets by time, middle": by_time,
            }
            figures = meter.observe(servers, asked, windows)
            figures["ListOffsets by time, middle: the first one, ms"] = first_ms
            yield size, figures | {"start to a record acknowledged, s": start_s}


def time_request(timestamp: int) -> bytes:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=BIG, partitions=[wanted])
    return encoded(ListOffsetsRequest(replica_id=-1, topics=[topic]), 1)


CURVES = (
    Curve("partitions", (1, 10, 100, 1000, 10_000), (1, 100, 1000), partitions),
    Curve("topics", (10, 100, 1000, 3000), (10, 100), topics),
    Curve("open connections", (1, 100, 1000, 5000), (1, 100, 1000), connections),
    Curve("waiting fetches", (1, 100, 1000, 5000), (1, 100, 1000), waiting_fetches),
    Curve("consumer groups", (1, 10, 100, 1000), (1, 30, 100), groups),
    Curve("GiB of one partition", (1, 5, 10, 25, 50), (1, 3, 5), log_size),
)
