"""A cluster that exists only as bytes: requests are decoded, answered by a script, encoded.

    cluster = ScriptedCluster({ApiKey.METADATA: metadata_response})
    Cluster("b:9092", connector=cluster.connect)

An answer is a message, a (message, version to encode it in), bytes, an exception to raise while
reading, a list of those to be used up one by one (the last stays), or a function of (request,
broker port) that gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.headers import decode_request_header, encode_response
from kafkapy.protocol.messages import request_class
from kafkapy.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkapy.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

Answer = Any
Script = Mapping[ApiKey, Answer]


class ScriptedCluster:
    """Creates connections and records their `requests`: (port, request, version)."""

    def __init__(
        self,
        script: Script,
        versions: Mapping[ApiKey, tuple[int, int]] | None = None,
        chunk: int = 1 << 20,
    ) -> None:
        self.script = dict(script)
        self.versions = versions or {
            key: (each.first, each.last) for key, each in API_VERSIONS.items()
        }
        self.requests: list[tuple[int, Any, int]] = []
        self.connections: list[ScriptedTransport] = []
        self.refuse: set[int] = set()
        self.chunk = chunk

    def connect(self, host: str, port: int, security: Any, timeout_s: float) -> ScriptedTransport:
        """A `kafkapy.client.transport.Connector`."""
        from kafkapy.client.transport import network_error

        if port in self.refuse:
            raise network_error(host, port, ConnectionRefusedError(111, "Connection refused"))
        self.connections.append(ScriptedTransport(self, port))
        return self.connections[-1]

    def requests_of(self, key: ApiKey) -> list[Any]:
        """The requests of one API, in order."""
        return [request for _, request, _ in self.requests if key == request.API_KEY]

    def answer(self, port: int, request: Any, version: int) -> Answer:
        """The scripted answer."""
        self.requests.append((port, request, version))
        if request.API_KEY == ApiKey.API_VERSIONS and ApiKey.API_VERSIONS not in self.script:
            keys = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ]
            return ApiVersionsResponse(api_keys=keys)
        found = self.script[request.API_KEY]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return found(request, port) if callable(found) else found


class ScriptedTransport:
    """One connection, as `Transport`."""

    def __init__(self, cluster: ScriptedCluster, port: int) -> None:
        self.cluster = cluster
        self.port = port
        self.closed = False
        self.limit_s: float | None = None
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._failure: BaseException | None = None

    def sendall(self, data: bytes) -> None:
        assert not self.closed, "sent on a closed connection"
        self._incoming += data
        while len(self._incoming) >= 4:
            size = int.from_bytes(self._incoming[:4], "big")
            if len(self._incoming) < 4 + size:
                return
            frame = bytes(self._incoming[4 : 4 + size])
            del self._incoming[: 4 + size]
            self._serve(memoryview(frame))

    def _serve(self, frame: memoryview) -> None:
        header, position = decode_request_header(frame)
        cls = request_class(header.api_key)
        request, end = decode(cls, header.api_version, frame, position)
        assert end == len(frame), "bytes left after the request"
        answer = self.cluster.answer(self.port, request, header.api_version)
        if isinstance(answer, BaseException):
            self._failure = answer
            return
        if isinstance(answer, bytes):
            self._outgoing += answer
            return
        version = header.api_version
        if isinstance(answer, tuple):
            answer, version = answer
        for part in encode_response(answer, header.api_key, version, header.correlation_id):
            self._outgoing += part

    def recv_into(self, buffer: memoryview) -> int:
        if self._failure is not None and not self._outgoing:
            failure, self._failure = self._failure, None
            raise failure
        count = min(len(buffer), len(self._outgoing), self.cluster.chunk)
        buffer[:count] = self._outgoing[:count]
        del self._outgoing[:count]
        return count

    def settimeout(self, seconds: float | None) -> None:
        assert seconds is None or seconds > 0
        self.limit_s = seconds

    def close(self) -> None:
        self.closed = True


def metadata(
    topics: Mapping[str, Mapping[int, tuple[int, list[int], list[int]]]] | None = None,
    *,
    brokers: Mapping[int, int] | None = None,
    controller: int = 1,
    errors: Mapping[str, int] | None = None,
    topic_ids: Mapping[str, Any] | None = None,
) -> Callable[[Any, int], MetadataResponse]:
    """Answers Metadata: topics {name: {partition: (leader, replicas, isr)}}, brokers {id: port}."""
    known = dict(topics or {})
    ports = brokers or {1: 9092}

    def one(name: str) -> MetadataResponseTopic:
        if name not in known:
            return MetadataResponseTopic(error_code=(errors or {}).get(name, 3), name=name)
        partitions = [
            MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=0,
                replica_nodes=replicas,
                isr_nodes=isr,
                error_code=0 if leader >= 0 else 5,
            )
            for index, (leader, replicas, isr) in known[name].items()
        ]
        made = MetadataResponseTopic(
            name=name, partitions=partitions, is_internal=name.startswith("__")
        )
        if topic_ids and name in topic_ids:
            made.topic_id = topic_ids[name]
        return made

    def answer(request: Any, port: int) -> MetadataResponse:
        names = known if request.topics is None else [t.name for t in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=i, host="b", port=p) for i, p in ports.items()],
            cluster_id="cluster",
            controller_id=controller,
            topics=[one(name) for name in names],
        )

    return answer
