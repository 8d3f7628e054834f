"""The clients that are programs of their own: kcat, kafkajs, Apache Kafka's console tools."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dev import fetch_peers
from tests.conformance.peer import CODECS, limit_s
from tests.conformance.workload import Headers, Received, Row
from tests.harness.processes import apache_kafka

KAFKAJS_PROGRAM = Path(__file__).with_name("kafkajs_peer.js")


def run(command: Sequence[str], stdin: bytes = b"", limit: float = 120) -> bytes:
    """stdout of a command that must succeed."""
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=limit)
    complaint = done.stderr.decode(errors="replace")[-2000:]
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {complaint}"
    return done.stdout


class KcatPeer:
    """kcat: librdkafka from Debian; one set of headers per run, timestamps of its own."""

    name = "kcat"
    codecs = CODECS
    sets_timestamps = False
    fixed_headers = True

    def version(self) -> str:
        text = fetch_peers.command_output("kcat", "-V").replace("(", "").split()
        return (
            f"{text[text.index('Version') + 1]} (librdkafka {text[text.index('librdkafka') + 1]})"
        )

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        command = ["kcat", "-b", servers, "-P", "-t", topic, "-K", "\t", "-z", codec]
        command += ["-X", "partitioner=murmur2_random", "-X", "enable.idempotence=true"]
        for name, value in rows[0].headers:
            command += ["-H", f"{name}={value.decode()}"]
        lines = b"".join(b"%s\t%s\n" % (row.key, row.value) for row in rows)
        run(command, lines, limit_s(len(rows)))

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        command = ["kcat", "-q", "-b", servers, "-c", str(count), "-f", "%p %o %T %K %S %h\n%k%s"]
        command += ["-X", "auto.offset.reset=earliest", "-G", group, topic]
        return parse_kcat(run(command, limit=limit_s(count)))

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        asked = f"{topic}:{partition}:{timestamp}"
        answer = run(["kcat", "-b", servers, "-Q", "-t", asked])
        return int(answer.split()[-1])


def parse_kcat(output: bytes) -> list[Received]:
    """Records from kcat's output: a line of numbers, then exactly the key and the value."""
    received, at = [], 0
    while at < len(output):
        end = output.index(b"\n", at)
        partition, offset, timestamp, key_size, value_size, *rest = output[at:end].split(b" ")
        middle = end + 1 + int(key_size)
        at = middle + int(value_size)
        headers = parse_pairs(rest[0].decode() if rest else "", "=")
        key, value = output[end + 1 : middle], output[middle:at]
        received.append(Received(int(partition), int(offset), int(timestamp), key, value, headers))
    return received


def parse_pairs(text: str, separator: str) -> Headers:
    """Headers from "name=value,name=value" (our header values have no comma)."""
    pairs = [pair.partition(separator) for pair in text.split(",") if separator in pair]
    return tuple((name, value.encode()) for name, _, value in pairs)


class KafkaJsPeer:
    """kafkajs on Node; gzip is its own, snappy its plug-in; no plug-in in
    JavaScript writes lz4 or zstd that Apache Kafka takes."""

    name = "kafkajs"
    codecs = ("none", "gzip", "snappy")
    sets_timestamps = True
    fixed_headers = False

    def version(self) -> str:
        package = fetch_peers.kafkajs_dir() / "node_modules" / "kafkajs" / "package.json"
        node = fetch_peers.command_output("node", "--version")
        return f"{json.loads(package.read_text())['version']} (Node {node})"

    def _run(self, limit: float, stdin: bytes = b"", **arguments: object) -> bytes:
        arguments["packages"] = str(fetch_peers.kafkajs_dir())
        return run(["node", str(KAFKAJS_PROGRAM), json.dumps(arguments)], stdin, limit)

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        def packed(row: Row) -> str:
            headers = {name: encoded(value) for name, value in row.headers}
            return json.dumps([encoded(row.key), encoded(row.value), headers, row.timestamp])

        lines = "\n".join(packed(row) for row in rows).encode()
        limit = limit_s(len(rows))
        self._run(limit, lines, verb="produce", servers=servers, topic=topic, codec=codec)

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        output = self._run(
            limit_s(count), verb="consume", servers=servers, topic=topic, group=group, count=count
        )
        received = []
        for line in output.splitlines():
            partition, offset, timestamp, key, value, headers = json.loads(line)
            pairs = tuple((name, base64.b64decode(text)) for name, text in headers.items())
            received.append(
                Received(
                    partition,
                    int(offset),
                    int(timestamp),
                    base64.b64decode(key),
                    base64.b64decode(value),
                    pairs,
                )
            )
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        output = self._run(60, verb="time", servers=servers, topic=topic, timestamp=timestamp)
        offsets = {item["partition"]: int(item["offset"]) for item in json.loads(output)}
        return offsets[partition]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class ApacheConsolePeer:
    """Apache Kafka 3.9's own console producer and consumer (the Java client)."""

    name = "Apache Kafka console"
    codecs = CODECS
    sets_timestamps = False
    fixed_headers = False

    def version(self) -> str:
        return apache_kafka.VERSION

    def _run(self, main_class: str, *args: str, stdin: bytes = b"", limit: float = 120) -> bytes:
        return run(apache_kafka.java_command(main_class, *args), stdin, limit)

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        def line(row: Row) -> bytes:
            headers = b",".join(b"%s:%s" % (name.encode(), value) for name, value in row.headers)
            return b"%s\t%s\t%s\n" % (headers, row.key, row.value)

        self._run(
            apache_kafka.CONSOLE_PRODUCER,
            *("--bootstrap-server", servers, "--topic", topic),
            *("--compression-codec", codec, "--producer-property", "linger.ms=20"),
            *("--property", "parse.key=true", "--property", "parse.headers=true"),
            stdin=b"".join(line(row) for row in rows),
            limit=limit_s(len(rows)),
        )

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        printed = ("timestamp", "partition", "offset", "headers", "key")
        flags = [word for name in printed for word in ("--property", f"print.{name}=true")]
        output = self._run(
            apache_kafka.CONSOLE_CONSUMER,
            *("--bootstrap-server", servers, "--topic", topic, "--group", group),
            *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000", *flags),
            limit=limit_s(count),
        )
        received = []
        for line in output.split(b"\n")[:-1]:
            when, partition, offset, headers, key, value = line.split(b"\t", 5)
            numbers = [int(word.rpartition(b":")[2]) for word in (partition, offset, when)]
            pairs = parse_pairs(headers.decode(), ":")
            received.append(Received(numbers[0], numbers[1], numbers[2], key, value, pairs))
        assert len(received) == count, f"{len(received)} of {count} records"
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        output = self._run(
            apache_kafka.GET_OFFSET_SHELL,
            *("--bootstrap-server", servers, "--topic-partitions", f"{topic}:{partition}"),
            *("--time", str(timestamp)),
        )
        return int(output.split(b":")[-1])
