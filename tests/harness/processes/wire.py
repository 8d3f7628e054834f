"""A plain connection to a broker; each request names the version of its API."""

from __future__ import annotations

import socket
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import create_topics, produce, response_class
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.processes.broker_process import ServerProcess
from tests.harness.storage.legacy_messages import message

RECORDS = [RecordData(b"k%d" % i, b"v%d" % i, 1000 + i, []) for i in range(3)]


def old_records(version: int) -> bytes:
    """The records as producers before 0.11 send them: magic 0, from v2 on magic 1."""
    magic = 1 if version >= 2 else 0
    return b"".join(
        message(magic, i, key=r.key, value=r.value, timestamp=r.timestamp)
        for i, r in enumerate(RECORDS)
    )


def produce_request(
    topic: str, records: Any, acks: int, partition: int, topic_id: Uuid = ZERO_UUID
) -> produce.ProduceRequest:
    """Records for one partition."""
    data = produce.PartitionProduceData(index=partition, records=records)
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


class Wire:
    """A plain connection; each request names its version."""

    def __init__(self, broker: ServerProcess) -> None:
        self.servers = broker.bootstrap_servers
        host, port = self.servers.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0
        self.topic_ids: dict[str, Uuid] = {}

    def ask(self, request: Any, version: int) -> Any:
        self._correlation_id += 1
        self._socket.sendall(encode_request(request, version, self._correlation_id, "wire"))
        size = int.from_bytes(self._stream.read(4), "big")
        answer = response_class(request.API_KEY)
        got, response = decode_response(answer, version, memoryview(self._stream.read(size)))
        assert got == self._correlation_id
        return response

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        request = create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        create_topics.CreatableTopicConfig(name=k.replace("_", "."), value=v)
                        for k, v in configs.items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )
        [row] = self.ask(request, 7).topics
        assert row.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), row
        if not row.error_code:
            self.topic_ids[name] = row.topic_id

    def produce(self, topic: str, version: int = 9, acks: int = -1, partition: int = 0) -> Any:
        records = old_records(version) if version < 3 else build_batch(RECORDS)
        topic_id = self.topic_ids.get(topic, ZERO_UUID)
        request = produce_request(topic, records, acks, partition, topic_id)
        [row] = self.ask(request, version).responses[0].partition_responses
        return row

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
