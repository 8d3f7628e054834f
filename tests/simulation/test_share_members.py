"""Deliveries recorded by a share group member: the time of arrival, damaged or not.

If the lock may have ended in flight, a delivery also has the earliest time of its acquisition.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import share_acknowledge, share_fetch
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.faults.share_anomalies import AckOutcome, Delivery
from tests.simulation import share_members
from tests.simulation.clients import Refused
from tests.simulation.cluster import Cluster
from tests.simulation.events import SECOND_US
from tests.simulation.plan import plan_of
from tests.simulation.share_members import ShareGroupProgress, ShareMember
from tests.simulation.world import World

COUNT = 3


def row(partition: int) -> share_fetch.PartitionData:
    """A partition with one acquired record."""
    return share_fetch.PartitionData(
        partition_index=partition,
        records=build_batch([RecordData(None, b"v", 0)]),
        acquired_records=[
            share_fetch.AcquiredRecords(first_offset=0, last_offset=0, delivery_count=COUNT)
        ],
    )


class Scripted(ShareMember):
    """Fetches once: receives `rows` after a while, and all its acknowledgements are confirmed. By
    then its broker leads in another epoch if `is_led_in_new_epoch`."""

    def __init__(
        self,
        world: World,
        rows: list[share_fetch.PartitionData],
        takes_s: float,
        *,
        is_led_in_new_epoch: bool,
    ) -> None:
        self.rows = rows
        self.takes_s = takes_s
        self.is_led_in_new_epoch = is_led_in_new_epoch
        self.refusal = ""
        cluster = Cluster(world, plan_of(world.random))
        super().__init__(world, cluster, "s1", "orders", ShareGroupProgress(lambda: False))

    async def run(self) -> None:
        try:
            await self._share(0)
        except Refused as refusal:
            self.refusal = str(refusal)

    async def leader(self, topic: str, partition: int) -> int:
        return 1

    def topic_id(self, topic: str) -> Uuid:
        return Uuid(bytes(16))

    async def _in_session(self, leader: int, request: Any) -> Any:
        if isinstance(request, share_fetch.ShareFetchRequest):
            await asyncio.sleep(self.takes_s)
            if self.is_led_in_new_epoch:
                self.history.epoch_led = lambda broker_id, at: 7
            given = share_fetch.ShareFetchableTopicResponse(partitions=self.rows)
            return share_fetch.ShareFetchResponse(responses=[given])
        [partition] = request.topics[0].partitions
        confirmed = share_acknowledge.ShareAcknowledgeTopicResponse(
            partitions=[share_acknowledge.PartitionData(partition_index=partition.partition_index)]
        )
        return share_acknowledge.ShareAcknowledgeResponse(responses=[confirmed])


def shared(
    rows: list[share_fetch.PartitionData],
    takes_s: float = 0.1,
    *,
    is_led_in_new_epoch: bool = False,
) -> tuple[list[Delivery], Scripted]:
    world = World(0)
    member = Scripted(world, rows, takes_s, is_led_in_new_epoch=is_led_in_new_epoch)
    world.events.run_until(5 * SECOND_US)
    assert not world.faults
    return member.history.share_deliveries, member


def test_what_is_acknowledged_late_was_not_delivered_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_members, "_HOLD_PROBABILITY", 1.0)
    (first, second), _ = shared([row(0), row(1)])
    assert first.at == second.at < 1
    assert first.acknowledged_at >= 1
    assert second.acknowledged_at >= 2


@pytest.mark.parametrize(("takes_s", "is_led_in_new_epoch"), [(0.2, True), (1.1, False)])
def test_when_what_came_late_was_asked_for(takes_s: float, is_led_in_new_epoch: bool) -> None:
    [delivery], _ = shared([row(0)], takes_s, is_led_in_new_epoch=is_led_in_new_epoch)
    assert delivery.ack_outcome is AckOutcome.CONFIRMED
    assert delivery.requested_at == pytest.approx(delivery.at - takes_s)


def test_a_delivery_of_a_deposed_leader_has_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its broker leads again, and confirms the acknowledgement of a record before its start."""
    monkeypatch.setattr(Cluster, "leader_epoch", lambda cluster, at: 6)
    [delivery], _ = shared([row(0)], is_led_in_new_epoch=True)
    assert delivery.ack_outcome is AckOutcome.CONFIRMED
    assert delivery.counts_from == -inf
    [delivery], _ = shared([row(0)])
    assert delivery.counts_from == delivery.at


@pytest.mark.parametrize("holds", [0.0, 1.0])
def test_what_came_with_its_lock_counts_from_then(
    monkeypatch: pytest.MonkeyPatch, holds: float
) -> None:
    monkeypatch.setattr(share_members, "_HOLD_PROBABILITY", holds)
    [delivery], _ = shared([row(0)], 0.9)
    assert delivery.ack_outcome is AckOutcome.CONFIRMED
    assert delivery.requested_at == inf


@pytest.mark.parametrize("index", [0, 1])
def test_what_came_damaged_was_delivered(index: int) -> None:
    rows = [row(0), row(1)]
    damaged = bytearray(bytes(rows[index].records or b""))
    damaged[-1] ^= 1
    rows[index].records = bytes(damaged)
    deliveries, member = shared(rows)
    assert "corrupt" in member.refusal
    assert [delivery.count for delivery in deliveries] == [COUNT, COUNT]
    assert [d.ack_outcome for d in deliveries][index:] == [AckOutcome.REFUSED] * (2 - index)
