"""Correct clients of the simulated cluster: their base class, producers and readers.

They use production's connection and codec. Their responses are recorded in the history, which the
checkers evaluate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import orjson

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import fetch, find_coordinator, list_offsets, metadata
from kafkapy.protocol.messages import produce as produce_messages
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.records import iter_records
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.zk.stores import paths
from tests.harness.faults.anomalies import PRODUCER_STEP, Mode
from tests.simulation.history import Answer
from tests.simulation.node import PORT

if TYPE_CHECKING:
    from tests.simulation.history import SimHistory
    from tests.simulation.world import World

REQUEST_TIMEOUT_MS: Final = 1500
METADATA_MAX_AGE_S: Final = 2.0
_PRODUCE_TIMEOUT_MS: Final = 1000
_BACKOFF_MS: Final = 60
_IN_FLIGHT_MAX: Final = 5
"""`max.in.flight.requests.per.connection` of an idempotent producer."""
_FETCH_BYTES: Final = (600, 4096, 4096)
"""Limits of a fetch. Readers with the small one fetch from the middle of segments."""
_VERSIONS_WITHOUT_EPOCH: Final = (3, 4, 5, 7, 8, 10)
"""Versions of Fetch. Later ones without a leader epoch allow responses of outdated followers."""
_SEEK_PROBABILITY: Final = 0.3
_VERSIONS_WITH_EPOCH: Final = (9, 10, 11, 12)
_FETCH_FROM_FOLLOWERS: Final = 11
_LIST_OFFSETS_VERSION: Final = 5

_NONE: Final = int(ErrorCode.NONE)


class Refused(Exception):
    """Raised for an error code after which a client tries again, perhaps at another broker."""


class Client:
    """A process with connections to the brokers in its metadata."""

    def __init__(self, world: World, host: str) -> None:
        self.world = world
        self.host = host
        self.process = world.process(host)
        self.is_stopping = False
        self.is_done = False
        self.ignores_known_epochs = False
        """Accept older leader epochs, as clients before KIP-320 do."""
        self.leader_epochs: dict[tuple[str, int], int] = {}
        self._nodes: dict[int, NodeClient] = {}

    def spawn(self, work: Any) -> None:
        self.process.call_soon(
            lambda: self.process.create_task(work).add_done_callback(self._ended)
        )

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Report the exception of a client, which makes no more observations after it."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.world.fault(self.host, error, "a client ended")

    def node(self, broker_id: int) -> NodeClient:
        found = self._nodes.get(broker_id)
        if found is None:
            found = self._nodes[broker_id] = NodeClient(
                f"b{broker_id}", PORT, self.host, request_timeout_ms=REQUEST_TIMEOUT_MS
            )
        return found

    def any_broker(self) -> int:
        return self.world.random.choice(list(self.world.nodes))

    async def pause(self, low_ms: int, high_ms: int) -> None:
        """Sleep for a random time on the simulated clock."""
        await asyncio.sleep(self.world.random.randrange(low_ms, high_ms) / 1000)

    async def leader(self, topic: str, partition: int) -> int:
        """Request the leader from any broker; ignore leader epochs below a known one (KIP-320).

        Raises:
            NodeUnavailable: that broker does not answer.
            Refused: it has no leader, or an older leader epoch than this client.
        """
        request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
        response = await self.node(self.any_broker()).request(request, 8)
        for row in response.topics[0].partitions:
            known = self.leader_epochs.get((topic, row.partition_index), 0)
            known = 0 if self.ignores_known_epochs else known
            if row.partition_index == partition and row.leader_id >= 0 <= row.leader_epoch - known:
                self.leader_epochs[topic, partition] = row.leader_epoch
                return int(row.leader_id)
        raise Refused("nobody leads")

    def topic_id(self, topic: str) -> Uuid:
        """The topic's id in ZooKeeper. Raises Refused if the topic does not exist yet."""
        node = self.world.ensemble.tree.nodes.get(paths.topic(topic))
        if node is None:
            raise Refused("there is no topic yet")
        return Uuid.parse(str(orjson.loads(node.data)["topic_id"]))

    def leads(self, broker_id: int, topic: str) -> bool:
        """Whether ZooKeeper has a broker as the leader of partition 0 of a topic. A coordinator
        that was paused goes on for a moment as if it still led; none of its writes are kept."""
        node = self.world.ensemble.tree.nodes.get(paths.partition_state(topic, 0))
        return node is not None and orjson.loads(node.data)["leader"] == broker_id

    def validated(self, records: bytes) -> bytes:
        """Return the batches after a check of their CRCs, as consumers do. Raises Refused."""
        try:
            for position, header in iter_headers(records):
                validate_crc(records, position, header)
        except ApiError as error:
            self.world.counts["batches that readers refused"] += 1
            raise Refused(error.message) from error
        return records

    async def fetched_row(
        self, broker_id: int, request: fetch.FetchRequest, version: int
    ) -> fetch.PartitionData:
        """The row of a fetch of one partition.

        Raises:
            NodeUnavailable: the broker does not answer.
            Refused: the client exceeds a quota and has to pause, so the response has no row.
        """
        response = await self.node(broker_id).request(request, version)
        if response.throttle_time_ms and not response.responses:
            self.world.counts["fetches beyond a quota"] += 1
            raise Refused("beyond a quota")
        answer: fetch.PartitionData
        [answer] = response.responses[0].partitions
        return answer

    async def coordinator(self, group: str) -> int:
        request = find_coordinator.FindCoordinatorRequest(key=group)
        response = await self.node(self.any_broker()).request(request, 3)
        if response.error_code != _NONE:
            raise Refused("no coordinator")
        return int(response.node_id)


class Producer(Client):
    """Sends numbered values to one partition, one batch in flight; retries until acknowledged.

    With acks -1 it is idempotent, and every value ends ACKED. With acks 1 it sends values once,
    and they may be lost.
    """

    def __init__(
        self, world: World, history: SimHistory, number: int, topic: str, partition: int, acks: int
    ) -> None:
        super().__init__(world, f"p{number}")
        self._history = history
        self._topic = topic
        self._partition = partition
        self._acks = acks
        self._next_value = number * PRODUCER_STEP
        self._producer_id = -1
        self._sequence = 0
        self._known = Answer(-1, 0)
        self.ignores_known_epochs = world.seed % 8 == number  # one of the first seven, or none
        self.spawn(self._run())

    async def _run(self) -> None:
        while not self.is_stopping:
            count = 1 + self.world.random.randrange(3)
            values = list(range(self._next_value, self._next_value + count))
            self._next_value += count
            if self._acks == -1:
                await self._deliver(values)
            else:
                await self._try_once(values)
            await self.pause(20, 160)
        self.is_done = True

    async def _deliver(self, values: list[int]) -> None:
        """Send until the response confirms the append."""
        while True:
            try:
                if self._producer_id < 0:
                    await self._init()
                answer, offset = await self._send(values)
            except (NodeUnavailable, Refused):
                await self.pause(_BACKOFF_MS, 2 * _BACKOFF_MS)
            except OutOfOrder as gap:
                self._report_gap(gap, values)
                self._producer_id, self._sequence = -1, 0
            else:
                self._known = answer
                self._sequence += len(values)
                self._history.acknowledged(answer, self._topic, self._partition, values, offset)
                return

    def record(self, value: int) -> RecordData:
        """The record that carries a number."""
        return RecordData(None, b"%d" % value, 1_700_000_000_000)

    async def _try_once(self, values: list[int]) -> None:
        try:
            await self._send(values)
        except (NodeUnavailable, Refused):
            await self.pause(_BACKOFF_MS, 2 * _BACKOFF_MS)
        else:
            self.world.counts["records acknowledged by the leader alone"] += len(values)
        self._history.sent(self._topic, self._partition, values)

    def _report_gap(self, gap: OutOfOrder, values: Iterable[int] = ()) -> None:
        """Report a gap. The producer sends `values` again under another producer id.

        A producer that ignores known epochs may return to a former leader that the controller
        cannot reach. That leader is not informed while its ZooKeeper session lives (decision 60).
        """
        went_back = self.ignores_known_epochs and gap.answer.epoch < self._known.epoch
        state = paths.partition_state(self._topic, self._partition)
        if went_back and self.world.ensemble.was_connected_at(paths.broker(gap.broker_id), state):
            self.world.counts["gaps at former leaders with a ZooKeeper session"] += 1
            return
        self._history.out_of_order(self._topic, self._partition, self._known, values)

    async def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        response = await self.node(self.any_broker()).request(request, 4)
        if response.error_code != _NONE:
            raise Refused("no producer id")
        self._producer_id = response.producer_id

    async def _send(self, values: list[int]) -> tuple[Answer, int]:
        """Send a batch; return its first value's offset, -1 for a duplicate at an unknown one."""
        leader = await self.leader(self._topic, self._partition)
        return await self._send_to(leader, values, self._sequence)

    async def _send_to(self, leader: int, values: list[int], sequence: int) -> tuple[Answer, int]:
        batch = build_batch(
            [self.record(value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=0 if self._producer_id >= 0 else -1,
            base_sequence=sequence if self._producer_id >= 0 else -1,
        )
        row = produce_messages.PartitionProduceData(index=self._partition, records=batch)
        request = produce_messages.ProduceRequest(
            acks=self._acks,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=[produce_messages.TopicProduceData(name=self._topic, partition_data=[row])],
        )
        response = await self.node(leader).request(request, 9)
        [answer] = response.responses[0].partition_responses
        code = answer.error_code
        origin = self._history.answer(leader, self._topic, self._partition)
        if code == _NONE:
            return origin, int(answer.base_offset)
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return origin, -1
        if code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            raise OutOfOrder(ErrorCode(code).name, leader, origin)
        raise Refused(ErrorCode(code).name)


class Pipeliner(Producer):
    """An idempotent producer with up to five batches in flight.

    A restarted leader may have only the last batch of a producer in its state, as in Kafka: it
    refuses the batches before it when they are sent again. It also refuses the first batch of a
    producer if that arrived damaged, and the later ones did not. The producer then cannot determine
    which batches were appended, and starts again under another producer id.
    """

    _has_acknowledgement = False
    """Whether a batch of this producer id was acknowledged."""
    _began_damaged = False
    """Whether one of the batches sent before that arrived damaged."""

    async def _run(self) -> None:
        window: list[tuple[int, list[int]]] = []
        leaders: set[tuple[int, int]] = set()
        while window or not self.is_stopping:
            try:
                if not window:
                    leaders.clear()
                if self._producer_id < 0:
                    await self._init()
                    self._has_acknowledgement = self._began_damaged = False
                # No new batches before the repeated ones: a leader keeps only the last five.
                for _ in range(0 if window else _IN_FLIGHT_MAX):
                    window.append((self._sequence, [self._next_value]))
                    self._next_value += 1
                    self._sequence += 1
                leader = await self.leader(self._topic, self._partition)
                leaders.add((leader, self.world.nodes[leader].run_number))
                window = await self._send_all(leader, window)
            except (NodeUnavailable, Refused):
                await self.pause(_BACKOFF_MS, 2 * _BACKOFF_MS)
            except OutOfOrder as gap:
                if len(leaders) == 1 and not self._began_damaged:
                    self._report_gap(gap)
                for _, values in window:
                    self._history.sent(self._topic, self._partition, values)
                window, self._producer_id, self._sequence = [], -1, 0
                self.world.counts["pipelines that began anew"] += 1
            await self.pause(20, 160)
        self.is_done = True

    async def _send_all(
        self, leader: int, window: list[tuple[int, list[int]]]
    ) -> list[tuple[int, list[int]]]:
        """Send all; return the unacknowledged ones. Raises OutOfOrder if the first one did."""
        flips, before = self.world.network.flips, self.world.network.flips[self.host]
        tasks = [self._send_to(leader, values, sequence) for sequence, values in window]
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        self._began_damaged |= flips[self.host] > before and not self._has_acknowledgement
        left = []
        for (sequence, values), found in zip(window, answers, strict=True):
            if isinstance(found, OutOfOrder) and not left:
                raise found
            if isinstance(found, NodeUnavailable | Refused | OutOfOrder):
                left.append((sequence, values))
                continue
            if isinstance(found, BaseException):
                raise found
            answer, offset = found
            self._known, self._has_acknowledgement = answer, True
            self._history.acknowledged(answer, self._topic, self._partition, values, offset)
            self.world.counts["batches acknowledged in a pipeline"] += 1
        return left


class OutOfOrder(Exception):
    """Raised if a partition lacks an acknowledged batch: it lost records, or the broker that
    answered no longer leads it."""

    def __init__(self, error: str, broker_id: int, answer: Answer) -> None:
        super().__init__(error)
        self.broker_id = broker_id
        self.answer = answer


class Reader(Client):
    """Polls one partition from its start, up to offset `end` once that is set.

    A reader with an assigned partition sends the leader epoch of its metadata (KIP-320), and, if it
    has a `rack`, reads from the replica there (KIP-392). Other readers use older versions.
    """

    def __init__(
        self,
        world: World,
        history: SimHistory,
        name: str,
        topic: str,
        partition: int,
        mode: Mode,
        end: int | None = None,
        rack: str = "",
    ) -> None:
        super().__init__(world, name)
        self.position = 0
        self._rack = rack
        names_epoch = mode is Mode.ASSIGN
        versions = (
            (_FETCH_FROM_FOLLOWERS,)
            if rack
            else _VERSIONS_WITH_EPOCH
            if names_epoch
            else _VERSIONS_WITHOUT_EPOCH
        )
        self._version = world.random.choice(versions)
        self._fetch_bytes = world.random.choice(_FETCH_BYTES)
        self._history = history
        self._topic = topic
        self._partition = partition
        self._mode = mode
        self._known = Answer(-1, 0)
        self.end = end
        self.spawn(self._run())

    async def _run(self) -> None:
        while not self.is_stopping:
            if self.end is not None and self.position >= self.end:
                break
            try:
                await self._poll()
            except (NodeUnavailable, Refused):
                await self.pause(_BACKOFF_MS, 3 * _BACKOFF_MS)
        self.is_done = True

    async def _poll(self) -> None:
        leader = await self.leader(self._topic, self._partition)
        at = TopicPartition(self._topic, self._partition)
        epoch = self.leader_epochs[at] if self._mode is Mode.ASSIGN else -1
        metadata_expiry_s = asyncio.get_running_loop().time() + METADATA_MAX_AGE_S
        source_id = leader
        while not self.is_stopping and asyncio.get_running_loop().time() < metadata_expiry_s:
            row = fetch.FetchPartition(
                partition=self._partition,
                current_leader_epoch=epoch,
                fetch_offset=self.position,
                partition_max_bytes=self._fetch_bytes,
            )
            request = fetch.FetchRequest(
                max_wait_ms=300,
                min_bytes=1,
                max_bytes=self._fetch_bytes,
                topics=[fetch.FetchTopic(topic=self._topic, partitions=[row])],
                rack_id=self._rack,
            )
            requested_us = self.world.events.now_us
            answer = await self.fetched_row(source_id, request, self._version)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and source_id == leader:
                start = await self._log_start(leader)
                if start <= self.position:  # it was not deleted
                    self._history.out_of_range(*at, self.position, self._known)
                self.position = start
            if answer.error_code != _NONE:
                raise Refused(ErrorCode(answer.error_code).name)
            if epoch >= 0 and source_id == leader:
                self._history.fetched(leader, at, epoch, requested_us)
            if answer.high_watermark >= self.position:  # else these records are gone, or will be
                self._known = self._history.answer(source_id, *at)
            if source_id != leader:
                self.world.counts["fetches answered by followers"] += 1
            elif answer.preferred_read_replica >= 0:
                source_id = answer.preferred_read_replica
            self._take(self.validated(bytes(answer.records or b"")))
            if self.end is not None and self.position >= self.end:
                return

    async def _log_start(self, leader: int) -> int:
        row = list_offsets.ListOffsetsPartition(partition_index=self._partition, timestamp=-2)
        topic = list_offsets.ListOffsetsTopic(name=self._topic, partitions=[row])
        request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])
        response = await self.node(leader).request(request, _LIST_OFFSETS_VERSION)
        [answer] = response.topics[0].partitions
        if answer.error_code != _NONE:
            raise Refused(ErrorCode(answer.error_code).name)
        return int(answer.offset)

    def _take(self, records: bytes) -> None:
        found = [
            (record.offset, int(record.value or b""))
            for record in iter_records(records)
            if record.offset >= self.position
        ]
        if found:
            self.position = found[-1][0] + 1
            consumer = (self.host, self._mode)
            self._history.polled(self._known, self._topic, self._partition, consumer, found)


class SeekingReader(Reader):
    """A consumer that seeks: it reads old records again, from random offsets."""

    _highest = _seek_position = 0
    _highest_answer = Answer(-1, 0)
    """The response that led to `_highest`."""

    async def _poll(self) -> None:
        if self.position < self._seek_position:  # the records that it had read are gone
            self._highest = 0
        if self.position >= self._highest:
            self._highest, self._highest_answer = self.position, self._known
        self._seek_position = self.position = self.world.random.randrange(self._highest + 1)
        self._known = self._highest_answer
        await super()._poll()

    def _take(self, records: bytes) -> None:
        super()._take(records)
        if self.world.random.random() < _SEEK_PROBABILITY:
            raise Refused("another position")
