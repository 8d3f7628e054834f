"""Share partitions over a real share coordinator, while both fail over and requests come late or
twice: no accepted record is delivered again, and no other is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.shares.messages import (
    InitializeState,
    ShareEffects,
    StateRequest,
    StateResult,
)
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.shares.records_in_flight import AckType
from kafkapy.replication.shares.share_partition import Acknowledgement, RecordBatch, ShareLimits
from kafkapy.server.coordinators.share_partitions import SharePartitions
from kafkapy.server.requests.turns import Work, run_now
from tests.harness.cores.consumer_shell import FakeTopics
from tests.harness.cores.ports import ManualClock

RECORDS = 12
LIMITS = ShareLimits(record_locks_max=100, delivery_count_limit=4, lock_duration_ms=1000)
MEMBERS = ("a", "b")
STEPS = 150


class Sent(NamedTuple):
    """A request on its way to the coordinator."""

    request: StateRequest
    answered: Callable[[StateResult], None]


class World:
    """One share partition, its leaders one after the other, and the coordinator's log."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        self.topics = FakeTopics()
        self.key = SharePartitionKey("g", self.topics.create("t", 1), 0)
        self.log: list[RecordData] = []
        self.network: list[Sent] = []
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.partition: Any = SimpleNamespace(
            leader_epoch=-1,
            topic_partition=TopicPartition("t", 0),
            log=SimpleNamespace(log_start_offset=0),
        )
        self.high_watermark = 0
        self.deliveries: Counter[int] = Counter()
        self.held: dict[str, list[tuple[int, int]]] = {member: [] for member in MEMBERS}
        self.done: set[int] = set()
        """Accepted or rejected, as a member was told."""
        self.tried: set[int] = set()
        """The same, and the member knows no outcome."""
        self.reload()
        self.handle(InitializeState(self.key, 1))
        self.lead()

    # The coordinator, whose records are replicated at once.

    def reload(self) -> None:
        self.coordinator = ShareCoordinator(
            ShareConfig(
                share_coordinator_state_topic_num_partitions=1,
                share_coordinator_snapshot_update_records_per_snapshot=3,
            ),
            self.clock,
            self.topics,
        )
        self.coordinator.start_loading(0, 0)
        if self.log:
            self.coordinator.replay_batches(0, build_batch(self.log))
        self.coordinator.finish_loading(0, 0)
        self.coordinator.replicated_up_to(0, 0, len(self.log))

    def handle(self, request: StateRequest) -> StateResult:
        results: list[StateResult] = []

        def perform(effects: ShareEffects) -> None:
            results.extend(result for _, result in effects.replies)
            for append in effects.appends:
                perform(self._append(append))

        perform(self.coordinator.handle(0, "token", request))
        [result] = results
        return result

    def _append(self, append: Append) -> ShareEffects:
        offset = len(self.log)
        self.log += append.records
        return self.coordinator.append_completed(0, append.append_id, ErrorCode.NONE, offset)

    # The leader.

    def lead(self) -> None:
        self.partition.leader_epoch += 1
        replicas: Any = SimpleNamespace(fetch_purgatory=SimpleNamespace(check=lambda key: None))
        persister: Any = SimpleNamespace(send=lambda *row: self.network.append(Sent(*row)))
        configs: Any = SimpleNamespace(
            limits=lambda group_id: LIMITS,
            start_offset=lambda group_id, find_log: self._start_offset(),
        )
        slices: Any = SimpleNamespace(queue=run_now)
        self.timers.clear()
        self.shares = SharePartitions(replicas, persister, configs, self.clock, self._later, slices)
        self.held = {member: [] for member in MEMBERS}

    def _start_offset(self) -> Work[int]:
        yield 1
        return self.high_watermark

    def _later(self, delay_s: float, step: Callable[[], None]) -> Any:
        row = (self.clock.monotonic_ms() + round(delay_s * 1000), step)
        self.timers.append(row)
        return SimpleNamespace(cancel=lambda: row in self.timers and self.timers.remove(row))

    def transmit(self) -> None:
        """One request comes, or its answer is lost and it is sent again: the first one too may come
        later."""
        if not self.network:
            return
        sent = self.network.pop(self.random.randrange(len(self.network)))
        fate = self.random.random()
        if fate < 0.2:
            self.network.append(sent)
            self.network.append(Sent(sent.request, lambda result: None))
        elif fate < 0.3:
            self.handle(sent.request)
            sent.answered(StateResult(ErrorCode.NETWORK_EXCEPTION))
        else:
            sent.answered(self.handle(sent.request))

    # Members.

    def acquire(self, member: str) -> None:
        leader_share = self.shares.find(self.key, self.partition)
        if leader_share.shares is None or not leader_share.shares.can_acquire:
            return
        offset = leader_share.shares.next_fetch_offset
        first = offset - offset % 3
        batches = [RecordBatch(n, n + 2) for n in range(first, self.high_watermark, 3)]
        found = leader_share.shares.acquire(
            self.clock.monotonic_ms(), member, offset, batches, 5, 100
        )
        self.shares.set_timer(leader_share)
        for each in found:
            self.held[member].append((each.first, each.last))
            for at in range(each.first, each.last + 1):
                assert at not in self.done, f"{at} is done, and delivered again"
                assert each.delivery_count <= LIMITS.delivery_count_limit
                self.deliveries[at] += 1

    def acknowledge(self, member: str, kind: AckType) -> None:
        leader_share = self.shares.get_loaded(self.key)
        if leader_share is None or not self.held[member]:
            return
        index = self.random.randrange(len(self.held[member]))
        first, last = self.held[member].pop(index)
        offsets = set(range(first, last + 1)) if kind is not AckType.RELEASE else set()
        self.tried |= offsets

        def answered(error: ErrorCode, message: str | None) -> None:
            if error is ErrorCode.NONE:
                self.done.update(offsets)

        self.shares.acknowledge(
            leader_share, member, [Acknowledgement(first, last, [kind])], answered
        )

    def pass_time(self) -> None:
        self.clock.now_ms += 400
        for row in [row for row in self.timers if row[0] <= self.clock.monotonic_ms()]:
            if row in self.timers:
                self.timers.remove(row)
                row[1]()

    def step(self) -> None:
        member = self.random.choice(MEMBERS)
        kinds = (AckType.ACCEPT, AckType.ACCEPT, AckType.RELEASE, AckType.REJECT)
        chance = self.random.random()
        if chance < 0.3:
            self.transmit()
        elif chance < 0.55:
            self.acquire(member)
        elif chance < 0.75:
            self.acknowledge(member, self.random.choice(kinds))
        elif chance < 0.85:
            self.pass_time()
        elif chance < 0.9:
            self.shares.release(member, "g")
            self.held[member].clear()
        elif chance < 0.94:
            self.reload()
        elif chance < 0.96:
            self.lead()
        else:
            self.high_watermark = min(self.high_watermark + 3, RECORDS)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_accepted_is_delivered_again_and_nothing_is_lost(seed: int) -> None:
    world = World(seed)
    world.acquire("a")
    while world.shares.get_loaded(world.key) is None:
        world.transmit()
        world.acquire("a")
    for _ in range(STEPS):
        world.step()
    world.high_watermark = RECORDS
    for _ in range(400):  # what is left is delivered and accepted
        world.transmit()
        world.acquire("a")
        world.acknowledge("a", AckType.ACCEPT)
        world.pass_time()
    leader_share = world.shares.get_loaded(world.key)
    assert leader_share is not None
    assert leader_share.shares is not None
    assert leader_share.shares.start_offset == RECORDS
    limit = LIMITS.delivery_count_limit
    lost = [n for n in range(RECORDS) if n not in world.tried and world.deliveries[n] < limit]
    assert not lost
