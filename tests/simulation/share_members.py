"""Members of a share group (KIP-932), which fetch, accept, release, reject, or hold for too long.

`tests/harness/faults/share_anomalies` checks their deliveries and acknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import (
    alter_share_group_offsets,
    describe_share_group_offsets,
    share_acknowledge,
    share_fetch,
)
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kafkapy.record.records import iter_records
from kafkapy.replication.shares.records_in_flight import AckType
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.harness.faults.share_anomalies import Acknowledgement, AckOutcome, Delivery, Place
from tests.simulation.clients import Refused
from tests.simulation.cluster import Cluster
from tests.simulation.group_clients import FATAL_HEARTBEAT_ERRORS, LEAVE_EPOCH, GroupClient

if TYPE_CHECKING:
    from tests.simulation.world import World

GROUP: Final = "dividing"
COUNT_LIMIT: Final = 5
_LOCK_MS: Final = 1000
CONFIG: Final = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.session.timeout.ms": "2000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "250",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": str(_LOCK_MS),
    "group.share.record.lock.duration.ms": str(_LOCK_MS),
    "group.share.delivery.count.limit": str(COUNT_LIMIT),
}
_LOCKED_S: Final = 0.95 * _LOCK_MS / 1000
"""No lock ends sooner: clocks run too fast by 2 % at most."""
_VERSION: Final = 1
_END_PROBABILITY: Final = 0.04
_HOLD_PROBABILITY: Final = 0.05
"""The probability that records are held for longer than their lock."""
_RELEASE_PROBABILITY: Final = 0.15
_REJECT_PROBABILITY: Final = 0.05


class _Fetch(NamedTuple):
    """A fetch: the time of its request, the leader epoch in which its broker led each partition
    then, and the epoch of the partition's last election when the response arrived."""

    at: float
    epochs: list[int]
    elected_epochs: list[int]

    def was_leader_deposed(self, partition: int) -> bool:
        """Whether another leader, which did not know of the delivery, may have been elected."""
        return self.elected_epochs[partition] != self.epochs[partition]


class ShareGroupProgress:
    """State that the members of the group share. `is_all_written()` is true when all is written.

    One member at a time begins the group (`is_beginning`). An AlterShareGroupOffsets that finds the
    group empty may take effect late, as in Kafka: the records of members that have joined meanwhile
    are delivered again. It has no effect after a later one, because its state epoch is over.
    """

    def __init__(self, is_all_written: Callable[[], bool]) -> None:
        self.is_beginning = False
        self.is_begun = False
        self.is_over = False
        self.is_all_written = is_all_written


class ShareMember(GroupClient):
    """A member that leaves or dies at times, and comes back under another id."""

    def __init__(
        self, world: World, cluster: Cluster, host: str, topic: str, progress: ShareGroupProgress
    ) -> None:
        self._progress = progress
        self._cluster = cluster
        self._assigned: list[int] = []
        self._sessions: dict[int, int] = {}  # the next session epoch, by broker
        super().__init__(world, cluster.history, host, GROUP, topic, cluster.plan.partitions)

    async def run(self) -> None:
        progress = self._progress
        while not progress.is_over:
            try:
                if not progress.is_begun:
                    await self._begin_alone()
                if not self.is_stopping and self.world.random.random() < _END_PROBABILITY:
                    await self._end()
                await self._heartbeat()
                for partition in self._assigned:
                    await self._share(partition)
                if progress.is_all_written():
                    progress.is_over = await self._is_all_completed()
            except (NodeUnavailable, Refused):
                self.lose_coordinator()
            await self.pause(40, 250)
        self.is_done = True

    async def _begin_alone(self) -> None:
        """Begin the group, unless another member does so: until then no member may join."""
        progress = self._progress
        if progress.is_beginning:
            raise Refused("another member begins the group")
        progress.is_beginning = True
        try:
            await self._begin()
        finally:
            progress.is_beginning = False

    async def _begin(self) -> None:
        """Begin a group without members at the first records."""
        rows = [
            alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
                partition_index=partition, start_offset=0
            )
            for partition in range(self.partitions)
        ]
        topic = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
            topic_name=self.topic, partitions=rows
        )
        request = alter_share_group_offsets.AlterShareGroupOffsetsRequest(
            group_id=GROUP, topics=[topic]
        )
        response = await self.send_to_coordinator(request, 0)
        codes = [p.error_code for row in response.responses for p in row.partitions]
        self._check(response.error_code, *codes)
        self._progress.is_begun = len(codes) == self.partitions

    async def _end(self) -> None:
        """Leave or die. The member returns under another id."""
        self.world.counts["sharers that ended"] += 1
        member_id, self.member_id = self.member_id, ""
        if member_id and self.world.random.random() < 0.5:
            await self.send_to_coordinator(
                ShareGroupHeartbeatRequest(
                    group_id=GROUP, member_id=member_id, member_epoch=LEAVE_EPOCH
                ),
                _VERSION,
            )

    async def _heartbeat(self) -> None:
        if not self.member_id:
            self.member_id = str(Uuid(self.world.random.randbytes(16)))
            self.generation, self._assigned, self._sessions = 0, [], {}
        response = await self.send_to_coordinator(
            ShareGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                member_epoch=self.generation,
                subscribed_topic_names=[self.topic] if self.generation == 0 else None,
            ),
            _VERSION,
        )
        if response.error_code in FATAL_HEARTBEAT_ERRORS:
            self.world.counts["sharers that were fenced"] += 1
            self.member_id = ""
        self._check(response.error_code)
        self.generation = response.member_epoch
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            self._assigned = sorted(p for row in rows for p in row.partitions)

    def _check(self, *codes: int) -> None:
        for code in codes:
            if code != ErrorCode.NONE:
                raise Refused(ErrorCode(code).name)

    async def _share(self, partition: int) -> None:
        """Fetch the records that the leader of a partition delivers, and acknowledge them."""
        leader = await self.leader(self.topic, partition)
        topic = share_fetch.FetchTopic(
            topic_id=self.topic_id(self.topic),
            partitions=[share_fetch.FetchPartition(partition_index=partition)],
        )
        request = share_fetch.ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member_id,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=10_000,
            max_records=20,
            batch_size=20,
            topics=[topic],
        )
        epochs = [self._epoch(leader, index) for index in range(self.partitions)]
        sent_at = self.world.events.now_us / 1e6
        response = await self._in_session(leader, request)
        elected = [
            self._cluster.leader_epoch(TopicPartition(self.topic, index))
            for index in range(self.partitions)
        ]
        fetch = _Fetch(sent_at, epochs, elected)
        # All have arrived. A record that is acknowledged after others was not delivered later.
        found = [
            (row, self._deliveries(row))
            for topic in response.responses
            for row in topic.partitions
            if row.error_code == ErrorCode.NONE and row.acquired_records
        ]
        for row, deliveries in found:
            self._check_records(row, deliveries)
            await self._acknowledge(leader, row, deliveries, fetch)

    def _epoch(self, leader: int, partition: int) -> int:
        """The leader epoch in which a broker leads a partition, or has led it last."""
        return self.history.epoch_led(leader, TopicPartition(self.topic, partition))

    async def _in_session(self, leader: int, request: Any) -> Any:
        """The response to the next request of the session with a broker. An error ends the
        session."""
        request.share_session_epoch = self._sessions.pop(leader, 0)
        response = await self.node(leader).request(request, _VERSION)
        self._check(response.error_code)
        self._sessions[leader] = request.share_session_epoch + 1
        return response

    def _deliveries(self, row: share_fetch.PartitionData) -> list[Delivery]:
        """The acquired records, each with its later acknowledgement. A record that arrived damaged,
        or with damaged ones, counts as delivered too, as at its broker."""
        at = self.world.events.now_us / 1e6
        found = [
            Delivery(
                self.member_id,
                Place(row.partition_index, offset),
                batch.delivery_count,
                at,
                self._choose_acknowledgement(),
            )
            for batch in row.acquired_records
            for offset in range(batch.first_offset, batch.last_offset + 1)
        ]
        self.history.share_deliveries += found
        return found

    def _check_records(
        self, row: share_fetch.PartitionData, deliveries: Iterable[Delivery]
    ) -> None:
        """Check that the acquired records arrived whole."""
        records = self.validated(bytes(row.records or b""))
        there = {record.offset for record in iter_records(records)}
        wanted = {delivery.place.offset for delivery in deliveries}
        if not there >= wanted:
            raise Refused("a length was flipped on the way")
        self.world.counts["records shared"] += len(wanted)

    def _choose_acknowledgement(self) -> Acknowledgement:
        lot = 1.0 if self._progress.is_all_written() else self.world.random.random()
        if lot < _RELEASE_PROBABILITY:
            return Acknowledgement.RELEASE
        return (
            Acknowledgement.REJECT
            if lot < _RELEASE_PROBABILITY + _REJECT_PROBABILITY
            else Acknowledgement.ACCEPT
        )

    async def _acknowledge(
        self,
        leader: int,
        row: share_fetch.PartitionData,
        deliveries: Iterable[Delivery],
        fetch: _Fetch,
    ) -> None:
        if not self.is_stopping and self.world.random.random() < _HOLD_PROBABILITY:
            await self.pause(_LOCK_MS, _LOCK_MS + 500)
        by_offset = {delivery.place.offset: delivery for delivery in deliveries}
        batches = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                acknowledge_types=[
                    AckType[by_offset[offset].acknowledgement.name]
                    for offset in range(batch.first_offset, batch.last_offset + 1)
                ],
            )
            for batch in row.acquired_records
        ]
        partition = share_acknowledge.AcknowledgePartition(
            partition_index=row.partition_index, acknowledgement_batches=batches
        )
        topic = share_acknowledge.AcknowledgeTopic(
            topic_id=self.topic_id(self.topic), partitions=[partition]
        )
        acknowledged_at = self.world.events.now_us / 1e6
        for delivery in by_offset.values():
            delivery.acknowledged_at, delivery.ack_outcome = acknowledged_at, AckOutcome.UNKNOWN
        response = await self._in_session(
            leader,
            share_acknowledge.ShareAcknowledgeRequest(
                group_id=GROUP, member_id=self.member_id, topics=[topic]
            ),
        )
        [answer] = (p for topic in response.responses for p in topic.partitions)
        answered_at = self.world.events.now_us / 1e6
        # The leader has no locks of another epoch, and confirms old acknowledgements unchecked.
        index = row.partition_index
        is_same_leadership = self._epoch(leader, index) == fetch.epochs[index]
        for delivery in by_offset.values():
            delivery.answered_at, delivery.ack_outcome = (
                answered_at,
                _ack_outcome(answer.error_code),
            )
            if not is_same_leadership and fetch.was_leader_deposed(index):
                delivery.requested_at = -inf
            elif not is_same_leadership or delivery.at - fetch.at >= _LOCKED_S:
                delivery.requested_at = fetch.at

    async def _is_all_completed(self) -> bool:
        """Whether the group has completed all records."""
        wanted = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
            group_id=GROUP, topics=None
        )
        request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[wanted])
        [group] = (await self.send_to_coordinator(request, 1)).groups
        self._check(group.error_code)
        rows = [row for topic in group.topics for row in topic.partitions]
        self._check(*(row.error_code for row in rows))
        return len(rows) == self.partitions and all(row.lag == 0 for row in rows)


def _ack_outcome(code: int) -> AckOutcome:
    if code == ErrorCode.NONE:
        return AckOutcome.CONFIRMED
    return AckOutcome.REFUSED if code == ErrorCode.INVALID_RECORD_STATE else AckOutcome.UNKNOWN
