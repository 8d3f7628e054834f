"""The fetcher of each partition, also when its leader becomes known later or moves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkapy.common import lasting_work
from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.partition import Partition
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.interbroker.node_link import NodeUnavailable
from kafkapy.server.replicas import replica_fetchers
from kafkapy.server.replicas.follower_calls import to_leader_answer
from kafkapy.server.replicas.replica_fetchers import ReplicaFetchers, fetcher_id
from tests.harness.cores.server_parts import Parts
from tests.harness.processes.broker_process import free_port
from tests.harness.storage.counting_filesystem import CountingFileSystem
from tests.harness.storage.partitions import TOPIC_ID, partition_state

LEADER = 2


def new_endpoint() -> Endpoint:
    """An address at which no broker listens."""
    return Endpoint("PLAINTEXT", "127.0.0.1", free_port())


def new_fetchers(parts: Parts, known: Mapping[int, Endpoint]) -> ReplicaFetchers:
    """`known` are the addresses of brokers."""
    return ReplicaFetchers(KafkaConfig({}), parts.replicas, parts.clock, lambda: 1, known.get)


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "expected"),
    [("t", 0, 1, 0), ("t", 0, 4, 0), ("t", 3, 4, 3), ("orders", 7, 3, 1)],
)
def test_the_fetcher_is_kafkas_choice(
    topic: str, partition: int, fetchers: int, expected: int
) -> None:
    assert fetcher_id(TopicPartition(topic, partition), fetchers) == expected


def followed(partition: Partition, fetchers: ReplicaFetchers) -> bool:
    return any(partition in task.fetcher.partitions for task in fetchers._fetchers.values())


def test_a_leader_that_becomes_known_later_is_followed_then(tmp_path: Path) -> None:
    async def scene() -> None:
        parts = Parts(tmp_path)
        known: dict[int, Endpoint] = {}
        fetchers = new_fetchers(parts, known)
        parts.apply_leader_and_isr(partition_state(leader=LEADER, isr=(LEADER, 1)))
        partition = parts.replicas.partitions["t"][0]
        fetchers.follow(partition)
        fetchers.metadata_changed()
        assert not followed(partition, fetchers)
        known[LEADER] = new_endpoint()
        fetchers.metadata_changed()
        assert followed(partition, fetchers)
        fetchers.unfollow(partition.topic_partition)
        fetchers.metadata_changed()
        assert not followed(partition, fetchers)
        fetchers.stop()

    asyncio.run(scene())


def test_a_leader_that_comes_back_elsewhere_has_one_fetcher(tmp_path: Path) -> None:
    """Two would each fetch, and only one of them be told when a partition is followed no more."""

    async def scene() -> None:
        parts = Parts(tmp_path)
        known = {LEADER: new_endpoint()}
        fetchers = new_fetchers(parts, known)
        rows = [partition_state(LEADER, (LEADER, 1), None, 0, partition=i) for i in range(3)]
        parts.apply_leader_and_isr(*rows)
        partitions = list(parts.replicas.partitions["t"].values())
        for partition in partitions:
            fetchers.follow(partition)
        known[LEADER] = new_endpoint()
        fetchers.follow(partitions[0])
        [task] = fetchers._fetchers.values()
        assert set(task.fetcher.partitions) == set(partitions)
        for partition in partitions:
            fetchers.unfollow(partition.topic_partition)
        assert not fetchers._fetchers
        fetchers.stop()

    asyncio.run(scene())


def test_a_leader_epoch_that_begins_in_many_partitions_costs_one_wait(tmp_path: Path) -> None:
    """After a failover. One by one, acks=all waits for a thousand partitions' small files."""
    count = 20

    async def scene() -> None:
        fs = CountingFileSystem()
        parts = Parts(tmp_path, fs=fs)
        fetchers = new_fetchers(parts, {LEADER: new_endpoint()})
        rows = [partition_state(LEADER, (LEADER, 1), None, 3, partition=i) for i in range(count)]
        parts.apply_leader_and_isr(*rows)
        partitions = list(parts.replicas.partitions["t"].values())
        for partition in partitions:
            fetchers.follow(partition)
        [task] = fetchers._fetchers.values()
        asked = task.fetcher.next_fetch(parts.clock.monotonic_ms())
        assert asked is not None
        records = memoryview(build_batch([RecordData(None, b"v", 5)], leader_epoch=3))
        answers = [
            PartitionData(partition_index=i, high_watermark=0, log_start_offset=0, records=records)
            for i in range(count)
        ]
        topic = FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=answers)
        fs.waits.clear()
        task._process_response(
            asked, to_leader_answer(asked, FetchResponse(session_id=1, responses=[topic]))
        )
        assert [partition.log.log_end_offset for partition in partitions] == [1] * count
        assert [files for files in fs.waits if files] == [count]
        for partition in partitions:
            file = Path(partition.log.directory, "leader-epoch-checkpoint")
            assert file.read_bytes() == b"0\n1\n3 0\n"
        fetchers.stop()

    asyncio.run(scene())


def test_each_new_reason_of_a_failure_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, replica_fetchers.logger.name)

    async def scene() -> None:
        parts = Parts(tmp_path)
        fetchers = new_fetchers(parts, {LEADER: new_endpoint()})
        parts.apply_leader_and_isr(partition_state(LEADER, (LEADER, 1), None, 3))
        fetchers.follow(parts.replicas.partitions["t"][0])
        [task] = fetchers._fetchers.values()
        asked = task.fetcher.next_fetch(parts.clock.monotonic_ms())
        assert asked is not None
        for reason in ("refused", "refused", "wrong certificate", None, "refused"):
            task._pause = asyncio.get_running_loop().create_future()
            task._on_response(asked, NodeUnavailable(reason) if reason else FetchResponse())
        fetchers.stop()

    asyncio.run(scene())
    assert [each.levelname for each in caplog.records if "failed" in each.msg] == [
        "WARNING",
        "INFO",
        "WARNING",
        "WARNING",
    ]


def test_a_fault_that_nobody_expected_leaves_no_replica_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scene() -> None:
        parts = Parts(tmp_path)
        fetchers = new_fetchers(parts, {LEADER: new_endpoint()})
        parts.apply_leader_and_isr(partition_state(leader=LEADER, isr=(LEADER, 1)))
        fetchers.follow(parts.replicas.partitions["t"][0])
        [task] = fetchers._fetchers.values()
        asked = asyncio.Event()

        def next_fetch(now_ms: int) -> None:
            if not fault:
                asked.set()
                return
            raise fault.pop()

        fault = [ZeroDivisionError()]
        monkeypatch.setattr(task.fetcher, "next_fetch", next_fetch)
        await asyncio.wait_for(asked.wait(), 10)
        due_ms = task.fetcher.next_due_ms()
        assert due_ms is not None
        assert due_ms > parts.clock.monotonic_ms(), "after the back-off"
        fetchers.stop()

    asyncio.run(scene())
