"""The regression guard of `test_hot_path.py` for what followers and group coordinators do, and for
what a request leaves behind: bounds are what was measured and a tenth more."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from kafkapy.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kafkapy.record.builder import build_batch
from kafkapy.replication.follower_fetcher import FollowerFetcher, LeaderRow
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuota
from tests.harness.cores.call_counts import assert_at_most, calls
from tests.harness.cores.followers import Follower
from tests.harness.cores.hot_path import FETCH, PRODUCE, Client, fetch, produce
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.log_builder import row
from tests.harness.storage.partitions import batch, partition_state

COUNT = 50
JOIN, SYNC, HEARTBEAT, COMMIT, OFFSETS = 2, 2, 2, 6, 5

LED_FETCH_CALLS = 135
QUIET_LED_CALLS = 6.9
FOLLOWER_APPEND_CALLS = 68
QUIET_FOLLOWED_CALLS = 3.6
HEARTBEAT_CALLS = 107
COMMIT_CALLS = 387
OFFSET_FETCH_CALLS = 192
BLOCKS_LEFT = 0.5
"""Allocated blocks that a request may leave behind: some of the last positions in the log."""


# followers


@pytest.fixture
def fetcher() -> FollowerFetcher:
    quota = ReplicationQuota(1, 1000, 11)
    return FollowerFetcher(2, 1 << 20, 1000, quota, lambda failure: None)


def follow(parts: Parts, fetcher: FollowerFetcher, partitions: int) -> list[Partition]:
    parts.apply_leader_and_isr(
        *[partition_state(2, (1, 2), partition=index) for index in range(partitions)]
    )
    followed = [parts.replicas.get("t", index) for index in range(partitions)]
    for partition in followed:
        fetcher.follow(partition)
    return followed


def turn(fetcher: FollowerFetcher, *rows: LeaderRow) -> None:
    asked = fetcher.next_fetch(NOW_MS)
    assert asked is not None
    fetcher.on_response(asked, 0, 7, rows, NOW_MS, NOW_MS)


def test_a_follower_appends_what_its_leader_sent(tmp_path: Path, fetcher: FollowerFetcher) -> None:
    [partition] = follow(Parts(tmp_path), fetcher, 1)
    batches = [build_batch([row()], base_offset=n, leader_epoch=0) for n in range(COUNT + 1)]
    rows = [
        LeaderRow(partition.topic_partition, 0, n, 0, None, one) for n, one in enumerate(batches)
    ]
    turn(fetcher, rows[0])
    assert_at_most(FOLLOWER_APPEND_CALLS, lambda: [turn(fetcher, one) for one in rows[1:]], COUNT)
    assert partition.log.log_end_offset == COUNT + 1


def test_a_followed_partition_with_nothing_new(tmp_path: Path, fetcher: FollowerFetcher) -> None:
    follow(Parts(tmp_path), fetcher, COUNT)
    turn(fetcher)
    assert_at_most(QUIET_FOLLOWED_CALLS, lambda: turn(fetcher), COUNT)


def follower(parts: Parts, broker_id: int = 2, partitions: int = 1) -> Follower:
    """One at its leader, which knows what its plain fetches look like."""
    for index in range(partitions):
        parts.lead(index=index, isr=(1, 2, 3))
    parts.announce("t")
    found = Follower(parts, broker_id, partitions)
    found.begin()
    for offset in range(2):
        found.has(0, offset)
        found.send(0)
        parts.replicas.append("t", 0, batch(1, NOW_MS), 1, PRODUCE)
        found.answer()
    found.has(0, 2)
    found.general_requests = 0
    return found


def test_a_followers_fetch_at_its_leader(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    asking = follower(parts)
    fetches = []
    for offset in range(2, COUNT + 2):
        asking.has(0, offset)
        fetches.append(asking.prepare(0))

    one = batch(1, NOW_MS)

    def wait_and_wake() -> None:
        for send in fetches:
            send()
            parts.replicas.append("t", 0, one, 1, PRODUCE)

    appends = calls(lambda: parts.replicas.append("t", 0, one, 1, PRODUCE))
    parts.replicas.get("t", 0).log.truncate_to(2)
    assert_at_most(LED_FETCH_CALLS + appends.total(), wait_and_wake, COUNT)
    assert asking.general_requests == 0
    assert len(parts.replicas.fetch_purgatory) == 0


def test_a_partition_of_a_followers_session_with_nothing_new(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    asking = follower(parts, partitions=COUNT)
    send, one = asking.prepare(0), batch(1, NOW_MS)

    def wait_and_wake() -> None:
        send()
        parts.replicas.append("t", 0, one, 1, PRODUCE)

    assert_at_most(QUIET_LED_CALLS, wait_and_wake, COUNT)
    assert asking.general_requests == 0
    assert asking.answer() is not None


# groups


def run_due(parts: Parts) -> None:
    while 0 in parts.timers.delays_s:
        parts.timers.fire()


class Member:
    """The one member of a group."""

    def __init__(self, parts: Parts, client: Client) -> None:
        self.parts, self.client = parts, client
        joining = JoinGroupRequest(
            group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )  # fmt: skip
        client.sends(JOIN, joining)()
        run_due(parts)  # the others had their time to join
        _, joined = decode_response(JoinGroupResponse, JOIN, client.transport.sent[4:])
        self.id, self.generation = joined.member_id, joined.generation_id
        mine = SyncGroupRequestAssignment(member_id=self.id, assignment=b"all")
        syncing = SyncGroupRequest(
            group_id="g", generation_id=self.generation, member_id=self.id, assignments=[mine]
        )
        assert client.asks(SYNC, syncing, SyncGroupResponse).assignment == b"all"

    def heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.id)

    def commit(self, offset: int) -> OffsetCommitRequest:
        rows = [
            OffsetCommitRequestPartition(
                partition_index=0, committed_offset=offset, committed_metadata=""
            )
        ]
        return OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=self.generation, member_id=self.id,
            topics=[OffsetCommitRequestTopic(name="t", partitions=rows)],
        )  # fmt: skip

    def committed(self) -> int:
        found = self.client.asks(OFFSETS, offsets_of("t"), OffsetFetchResponse)
        offset: int = found.topics[0].partitions[0].committed_offset
        return offset


def offsets_of(topic: str) -> OffsetFetchRequest:
    wanted = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    return OffsetFetchRequest(group_id="g", topics=[wanted])


@pytest.fixture
def member(tmp_path: Path) -> Member:
    parts = Parts(tmp_path, properties={"group.initial.rebalance.delay.ms": "0"})
    parts.coordinate()
    run_due(parts)  # the groups are loaded
    parts.lead()
    parts.announce("t")
    return Member(parts, Client(parts))


def test_a_heartbeat(member: Member) -> None:
    assert member.client.asks(HEARTBEAT, member.heartbeat(), HeartbeatResponse).error_code == 0
    beats = member.client.sends(HEARTBEAT, *[member.heartbeat()] * COUNT)
    assert_at_most(HEARTBEAT_CALLS, beats, COUNT)


def test_a_commit_of_offsets(member: Member) -> None:
    answer = member.client.asks(COMMIT, member.commit(1), OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == 0
    commits = member.client.sends(COMMIT, *[member.commit(n) for n in range(COUNT)])
    assert_at_most(COMMIT_CALLS, commits, COUNT)
    assert member.committed() == COUNT - 1


def test_a_fetch_of_offsets(member: Member) -> None:
    member.client.asks(COMMIT, member.commit(5), OffsetCommitResponse)
    assert member.committed() == 5
    asks = member.client.sends(OFFSETS, *[offsets_of("t")] * COUNT)
    assert_at_most(OFFSET_FETCH_CALLS, asks, COUNT)


# memory


def blocks_left(work: Callable[[], None]) -> float:
    """Blocks that are allocated after `work` and were not before."""
    gc.collect()
    before = sys.getallocatedblocks()
    work()
    gc.collect()
    return sys.getallocatedblocks() - before


def test_a_request_leaves_nothing_behind(member: Member) -> None:
    """Whatever each request leaves would fill the memory of a broker that runs for months."""
    client = member.client
    times = member.parts.metrics.requests
    for api in ("Produce", "Fetch", "Heartbeat", "OffsetCommit"):
        for number in range(2000):
            times.observe(api, number / 1e6)  # the latest are kept, and here they are
    kinds: dict[str, Callable[[], Callable[[], None]]] = {
        "produce": lambda: client.sends(PRODUCE, *[produce("t")] * COUNT),
        "fetch": lambda: client.sends(FETCH, *[fetch()] * COUNT),
        "heartbeat": lambda: client.sends(HEARTBEAT, *[member.heartbeat()] * COUNT),
        "commit": lambda: client.sends(COMMIT, *[member.commit(9)] * COUNT),
    }
    for name, send in kinds.items():
        for _ in range(3):
            send()()
            client.transport.sent = b""

        def again(send: Callable[[], Callable[[], None]] = send) -> None:
            send()()
            client.transport.sent = b""

        left = blocks_left(again) / COUNT
        assert left <= BLOCKS_LEFT, f"a {name} leaves {left:.2f} blocks, at most {BLOCKS_LEFT}"


def test_a_followers_fetch_leaves_nothing_behind(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    asking = follower(parts)
    for api in ("Produce", "Fetch"):
        for number in range(2000):
            parts.metrics.requests.observe(api, number / 1e6)
    one = batch(1, NOW_MS)

    def again() -> None:
        for _ in range(COUNT):
            asking.has(0, parts.replicas.get("t", 0).log.log_end_offset)
            asking.send(0)
            parts.replicas.append("t", 0, one, 1, PRODUCE)
            asking.client.transport.sent = b""

    for _ in range(3):
        again()
    left = blocks_left(again) / COUNT
    assert asking.general_requests == 0
    assert left <= BLOCKS_LEFT, f"a follower's fetch leaves {left:.2f} blocks"
