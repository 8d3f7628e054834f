"""The newest Java client, by the program in java_peers/."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from dev import fetch_peers
from tests.conformance.peer import CODECS, SHARE, limit_s
from tests.conformance.process_peers import encoded, run
from tests.conformance.workload import Received, Row
from tests.harness.processes import apache_kafka


@dataclass(frozen=True)
class JavaPeer:
    """The Java client, idempotent; its groups have `protocol`."""

    protocol: str = "classic"
    name: str = "Java"
    codecs: tuple[str, ...] = CODECS
    sets_timestamps: bool = True
    fixed_headers: bool = False

    def version(self) -> str:
        return apache_kafka.KAFKA_4_CLIENT.version

    def _run(self, *words: object, stdin: bytes = b"", limit: float = 60) -> bytes:
        libs = apache_kafka.jars(apache_kafka.KAFKA_4_CLIENT)
        path = f"{fetch_peers.java_peer()}:{libs}/*"
        command = [apache_kafka.java(), "-XX:TieredStopAtLevel=1", "-cp", path, "Peer"]
        return run([*command, *map(str, words)], stdin, limit)

    def create(self, servers: str, topic: str, partitions: int, replicas: int) -> None:
        """Create a topic."""
        self._run("create", servers, topic, partitions, replicas)

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        def line(row: Row) -> str:
            headers = [word for name, value in row.headers for word in (name, encoded(value))]
            return "\t".join([str(row.timestamp), encoded(row.key), encoded(row.value), *headers])

        lines = "\n".join(map(line, rows)).encode()
        self._run("produce", servers, topic, codec, stdin=lines, limit=limit_s(len(rows)))

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        words: tuple[object, ...] = ("consume", servers, topic, group, count, self.protocol)
        if self.protocol == SHARE:
            words = ("share", servers, topic, group, count)
        decode = base64.b64decode
        received = []
        for line in self._run(*words, limit=limit_s(count)).decode().splitlines():
            partition, offset, timestamp, key, value, *headers = line.split("\t")
            pairs = zip(headers[::2], map(decode, headers[1::2]), strict=True)
            received.append(
                Received(
                    int(partition), int(offset), int(timestamp), decode(key), decode(value),
                    tuple(pairs),
                )
            )  # fmt: skip
        return received

    def committed(self, servers: str, topic: str, group: str, partitions: int) -> dict[int, int]:
        """partition -> the group's committed offset."""
        lines = self._run("committed", servers, topic, group).decode().splitlines()
        return {int(partition): int(offset) for partition, offset in map(str.split, lines)}
