"""Probes of `scripts/bench --cluster`: they observe clusters of every kind from outside.

A partition counts as led when the Metadata of every live broker names its leader, and as served
when its leader has acknowledged a record with acks=all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from dev.bench.cluster_servers import BROKER_IDS, Servers
from kafkapy.admin.topics import NewTopic, create_topic
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from kafkapy.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
)
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.record.builder import RecordData, build_batch

LIMIT_S = 300.0
POLL_S = 0.01
# A poll of 1,000 partitions costs this process and a broker some milliseconds of processor time.
METADATA_POLL_S = 0.05
SETTLE_S = 10.0
PRODUCE_TIMEOUT_MS = 60_000
PRODUCE_VERSION_MAX = 11  # later ones have topic ids
TOPIC_PARTITIONS = 1000
"""The number of partitions of each topic. More partitions are created as more topics."""

_MOVED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def until(condition: Callable[[], bool], what: str, poll_s: float = POLL_S) -> float:
    """Poll until `condition` holds. Returns the time (monotonic). Raises TimeoutError."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LIMIT_S:.0f} s: {what}")
        time.sleep(poll_s)
    return time.monotonic()


def settle() -> None:
    """Wait for background work to end before memory is read."""
    time.sleep(SETTLE_S)


def topic_name(number: int) -> str:
    return f"bench-{number:03}"


def create(servers: Servers, number: int, partitions: int = TOPIC_PARTITIONS) -> None:
    """Create a topic. Leaders alternate over all topics, so that they are balanced exactly."""
    first = number * TOPIC_PARTITIONS
    size = len(BROKER_IDS)
    rows = {
        index: [BROKER_IDS[(first + index + replica) % size] for replica in range(size)]
        for index in range(partitions)
    }
    try:
        create_topic(
            servers.clients[servers.live[0]], NewTopic(topic_name(number), assignment=rows)
        )
    except ApiError as error:
        # The controller continues after the client's timeout; the caller waits for the result.
        if error.code is not ErrorCode.REQUEST_TIMED_OUT:
            raise


def all_led(servers: Servers, topics: Mapping[str, int], in_sync: int) -> float:
    """Wait until each live broker reports a live leader and an ISR of `in_sync` for all partitions.

    `topics` are sizes by name. Each request is for one topic, so that polls cost the brokers
    little.
    """
    live = servers.live

    def good(row: MetadataResponsePartition) -> bool:
        return row.leader_id in live and len(row.isr_nodes) == in_sync and row.error_code == 0

    for broker_id in live:
        for name, size in topics.items():

            def led(broker_id: int = broker_id, name: str = name, size: int = size) -> bool:
                rows = _partitions(servers.clients[broker_id], name)
                return len(rows) == size and all(map(good, rows))

            what = f"all partitions of {name} led, as broker {broker_id} sees it"
            until(led, what, METADATA_POLL_S)
    return time.monotonic()


def _partitions(client: Cluster, topic: str) -> Sequence[MetadataResponsePartition]:
    wanted = [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    [found] = client.request(request).topics
    rows: Sequence[MetadataResponsePartition] = found.partitions
    return rows


def all_served(servers: Servers, topics: Mapping[str, int]) -> float:
    """Write a record to every partition, acks=all. Returns the time of the last acknowledgement."""
    batch = build_batch([RecordData(None, b"x", int(time.time() * 1000))])
    left = {name: set(range(size)) for name, size in topics.items()}
    deadline = time.monotonic() + LIMIT_S
    with ThreadPoolExecutor(len(BROKER_IDS)) as pool:
        while any(left.values()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sum(map(len, left.values()))} partitions take no records")
            work = _by_leader(servers, left)
            done = pool.map(lambda item: _produce(servers, *item, batch), work)
            for acknowledged in done:
                for name, indexes in acknowledged.items():
                    left[name] -= indexes
            time.sleep(POLL_S)
    return time.monotonic()


def _by_leader(
    servers: Servers, left: Mapping[str, set[int]]
) -> list[tuple[int, dict[str, list[int]]]]:
    work: dict[int, dict[str, list[int]]] = {}
    client = servers.clients[servers.live[0]]
    for name, indexes in left.items():
        if not indexes:
            continue
        for row in _partitions(client, name):
            if row.partition_index in indexes and row.leader_id in servers.live:
                rows = work.setdefault(row.leader_id, {}).setdefault(name, [])
                rows.append(row.partition_index)
    return list(work.items())


def _produce(
    servers: Servers, leader: int, topics: Mapping[str, Sequence[int]], batch: bytes
) -> dict[str, set[int]]:
    """Produce to one topic per request. Returns the partitions that acknowledged."""
    acknowledged: dict[str, set[int]] = {}
    client = servers.clients[leader]
    for name, indexes in topics.items():
        rows = [PartitionProduceData(index=i, records=memoryview(batch)) for i in indexes]
        data = [TopicProduceData(name=name, partition_data=rows)]
        request = ProduceRequest(acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=data)
        response = client.request(
            request, timeout_ms=2 * PRODUCE_TIMEOUT_MS, max_version=PRODUCE_VERSION_MAX
        )
        good = acknowledged[name] = set()
        for row in response.responses[0].partition_responses:
            error = ErrorCode(row.error_code)
            if error is ErrorCode.NONE:
                good.add(row.index)
            elif error not in _MOVED:
                raise ApiError(error, f"{name}-{row.index} refused a record: {error.name}")
    return acknowledged


def controller_answers(servers: Servers, broker_id: int) -> bool:
    """Whether a broker's controller has taken over: its event queue handles a request."""
    request = ListPartitionReassignmentsRequest(timeout_ms=PRODUCE_TIMEOUT_MS)
    response = servers.clients[broker_id].request(request, timeout_ms=2 * PRODUCE_TIMEOUT_MS)
    return bool(response.error_code == ErrorCode.NONE)
