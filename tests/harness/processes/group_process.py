"""Members of a group, each a process of its own that can be killed: verifiable consumers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness.processes import apache_kafka

STOP_LIMIT_S = 60.0
JAVA_VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"


class Event(NamedTuple):
    """One line that a member wrote."""

    name: str
    time_ms: int
    fields: dict[str, Any]


def librdkafka_command(servers: str, topic: str, group: str, protocol: str) -> list[str]:
    """A member that is kafkapy's tool, with librdkafka."""
    executable = Path(sys.executable).parent / "kafkapy"
    return [str(executable), "verifiable-consumer", *_flags(servers, topic, group, protocol)]


def java_command(servers: str, topic: str, group: str, protocol: str) -> list[str]:
    """A member that is Apache Kafka 4's tool, with its Java client."""
    flags = _flags(servers, topic, group, protocol)
    return apache_kafka.java_command(JAVA_VERIFIABLE_CONSUMER, *flags, release=apache_kafka.KAFKA_4)


def _flags(servers: str, topic: str, group: str, protocol: str) -> list[str]:
    return [
        *("--bootstrap-server", servers, "--topic", topic, "--group-id", group),
        *("--group-protocol", protocol, "--reset-policy", "earliest", "--verbose"),
    ]


class MemberProcess:
    """One member; its output is a file that grows."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self._output = output
        with output.open("wb") as sink, output.with_suffix(".err").open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=errors
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL: the coordinator receives nothing more from it."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM: it leaves the group."""
        if self.running:
            os.kill(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(STOP_LIMIT_S)
        finally:
            self.kill()

    def events(self) -> list[Event]:
        """The complete lines that it has written so far."""
        found = []
        for line in self._output.read_text().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                fields = json.loads(line)
                found.append(Event(fields["name"], int(fields["timestamp"]), fields))
        return found

    def complaint(self) -> str:
        """The end of its output."""
        texts = (self._output.read_text(), self._output.with_suffix(".err").read_text())
        return "\n".join(line for text in texts for line in text.splitlines()[-15:])

    def assigned(self) -> set[int]:
        """The partitions that are assigned to it, according to its output."""
        partitions: set[int] = set()
        for event in self.events():
            moved = {row["partition"] for row in event.fields.get("partitions", ())}
            if event.name == "partitions_assigned":
                partitions |= moved
            elif event.name == "partitions_revoked":
                partitions -= moved
        return partitions


Place = tuple[int, int]
"""Partition and offset."""


def consumed(members: Iterable[MemberProcess]) -> dict[Place, list[int]]:
    """The times at which each record was consumed, one or several."""
    times: dict[Place, list[int]] = defaultdict(list)
    for member in members:
        for event in member.events():
            if event.name == "record_data":
                times[event.fields["partition"], event.fields["offset"]].append(event.time_ms)
    return times


def consumed_after_commit(members: Sequence[MemberProcess]) -> list[str]:
    """Records that were consumed after a commit of a higher offset had been accepted."""
    commits: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for member in members:
        for event in member.events():
            if event.name == "offsets_committed" and event.fields["success"]:
                for row in event.fields["offsets"]:
                    commits[row["partition"]].append((event.time_ms, row["offset"]))
    return [
        f"{partition}-{offset} at {time_ms}, committed at {committed_ms}"
        for (partition, offset), times in consumed(members).items()
        for time_ms in times
        for committed_ms, next_offset in commits[partition]
        if offset < next_offset and time_ms > committed_ms
    ]
