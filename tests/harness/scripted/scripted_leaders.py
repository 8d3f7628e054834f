"""Scripted leaders, which append the batches of producers according to Kafka's rules.

    brokers = ScriptedLeaders({"t": 2}, leaders=[1, 2])
    cluster = Cluster("b:9001", QUICK, connector=brokers.scripted.connect)

`faults` are used up, one for each Produce request: None (served), an error code (refused),
`LOST_REQUEST` (the connection breaks before anything is appended), `LOST_ANSWER` (after it),
`MOVES` (the leaders change places, then it is refused).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import NO_PRODUCER_ID, add_to_sequence, read_header
from kafkapy.record.records import Record, iter_records
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

LOST_REQUEST: Final = "lost request"
LOST_ANSWER: Final = "lost answer"
MOVES: Final = "moves"

Fault = ErrorCode | str | None


class ScriptedLeaders:
    """Brokers 1, 2, ... on the ports 9001, ...; partition `i` is led by `leaders[i % len]`, and has
    no leader if that is -1.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        leaders: Iterable[int] = (1,),
        faults: Iterable[Fault] = (),
        max_bytes: int = 1 << 20,
    ) -> None:
        self.topics = topics
        self.leaders = list(leaders)
        self.faults = list(faults)
        self.max_bytes = max_bytes
        self.empty_metadata_answers = (
            0  # Metadata answers without topics, as after a broker's start
        )
        self.log: dict[TopicPartition, list[Record]] = defaultdict(list)
        self.identities = 0
        self._last: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        self.scripted = ScriptedCluster(
            {
                ApiKey.METADATA: self._metadata,
                ApiKey.INIT_PRODUCER_ID: self._identity,
                ApiKey.PRODUCE: self._produce,
            }
        )

    def values(self) -> list[bytes | None]:
        """The values of all partitions, one after the other, each in the order of its log."""
        return [row.value for _, rows in sorted(self.log.items()) for row in rows]

    def drop_producer_state(self, only: TopicPartition | None = None) -> None:
        """Drop producer state, all or that of a partition, as an unclean leader election does."""
        kept = {} if only is None else {at: n for at, n in self._last.items() if at[0] != only}
        self._last = kept

    def _leader(self, index: int) -> int:
        return self.leaders[index % len(self.leaders)]

    def _metadata(self, request: Any, port: int) -> Any:
        topics = {
            name: {i: (self._leader(i), [1, 2], [1, 2]) for i in range(count)}
            for name, count in self.topics.items()
        }
        if self.empty_metadata_answers > 0:
            self.empty_metadata_answers -= 1
            topics = {}
        brokers = {broker: 9000 + broker for broker in self.leaders if broker >= 0}
        return metadata(topics, brokers=brokers)(request, port)

    def _identity(self, request: Any, port: int) -> InitProducerIdResponse:
        self.identities += 1
        return InitProducerIdResponse(producer_id=self.identities, producer_epoch=0)

    def _produce(self, request: Any, port: int) -> Any:
        fault = self.faults.pop(0) if self.faults else None
        if fault == LOST_REQUEST:
            return ConnectionResetError(104, "reset")
        if fault == MOVES:
            self.leaders = self.leaders[1:] + self.leaders[:1]
        response = ProduceResponse()
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                where = TopicPartition(topic.name, data.index)
                if isinstance(fault, ErrorCode):
                    code = fault
                elif self._leader(data.index) != port - 9000:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                else:
                    code = self._append(where, bytes(data.records))
                answers.append(PartitionProduceResponse(index=data.index, error_code=code))
            response.responses.append(
                TopicProduceResponse(name=topic.name, partition_responses=answers)
            )
        return ConnectionResetError(104, "reset") if fault == LOST_ANSWER else response

    def _append(self, where: TopicPartition, batch: bytes) -> ErrorCode:
        header = read_header(batch)
        validate_crc(batch, 0, header)
        if len(batch) > self.max_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE
        if header.producer_id != NO_PRODUCER_ID:
            known = self._last.get((where, header.producer_id))
            if known == (header.base_sequence, header.last_sequence):
                return ErrorCode.NONE  # a duplicate: acknowledged, not appended
            expected = add_to_sequence(known[1], 1) if known else 0
            if header.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            place = where, header.producer_id
            self._last[place] = header.base_sequence, header.last_sequence
        self.log[where] += iter_records(batch)
        return ErrorCode.NONE
