"""Clients in Go: franz-go, sarama and kafka-go, by the program in go_peers/."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from dev import fetch_peers
from tests.conformance.peer import CODECS, limit_s
from tests.conformance.process_peers import encoded, run
from tests.conformance.workload import Received, Row


@dataclass(frozen=True)
class GoPeer:
    """One of the libraries that the program is built with."""

    name: str
    protocol: str = "classic"
    codecs: tuple[str, ...] = CODECS
    sets_timestamps: bool = True
    fixed_headers: bool = False

    def version(self) -> str:
        found: str = json.loads(run([str(fetch_peers.go_peers()), '{"verb": "versions"}']))[
            self.name
        ]
        return found.removeprefix("v")

    def _run(self, limit: float, stdin: bytes = b"", **arguments: object) -> bytes:
        words = json.dumps({"library": self.name, **arguments})
        return run([str(fetch_peers.go_peers()), words], stdin, limit)

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        def line(row: Row) -> str:
            headers = [[encoded(name.encode()), encoded(value)] for name, value in row.headers]
            return json.dumps([encoded(row.key), encoded(row.value), headers, row.timestamp])

        lines = "\n".join(map(line, rows)).encode()
        limit = limit_s(len(rows))
        self._run(limit, lines, verb="produce", servers=servers, topic=topic, codec=codec)

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        output = self._run(
            limit_s(count), verb="consume", servers=servers, topic=topic, group=group, count=count,
            protocol=self.protocol,
        )  # fmt: skip
        decode = base64.b64decode
        received = []
        for line in output.splitlines():
            partition, offset, key, value, headers, timestamp = json.loads(line)
            pairs = tuple((decode(name).decode(), decode(text)) for name, text in headers)
            received.append(
                Received(partition, offset, timestamp, decode(key), decode(value), pairs)
            )
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        output = self._run(60, verb="time", servers=servers, topic=topic, timestamp=timestamp)
        found: int = json.loads(output)[str(partition)]
        return found

    def create(self, servers: str, topic: str, partitions: int, replicas: int) -> None:
        """Create a topic. franz-go alone has an administrator here."""
        shape = {"partitions": partitions, "replicas": replicas}
        self._run(60, verb="create", servers=servers, topic=topic, **shape)

    def committed(self, servers: str, topic: str, group: str, partitions: int) -> dict[int, int]:
        """partition -> the group's committed offset."""
        output = self._run(60, verb="committed", servers=servers, topic=topic, group=group)
        return {int(partition): offset for partition, offset in json.loads(output).items()}
