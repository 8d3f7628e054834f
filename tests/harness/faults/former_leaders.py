"""Answers of Apache Kafka brokers that still act as leaders after they lost the leadership.

A broker that was stopped for longer than its ZooKeeper session continues as leader until its client
detects that the session has expired: one to two seconds later. Meanwhile its metadata directs
clients to it, and its log ends early. It refuses a producer's next sequence number, which is fatal
for an idempotent producer of librdkafka, and a consumer's position.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import NamedTuple

from kazoo.protocol.states import ZnodeStat

from tests.harness.faults.anomalies import Anomalies
from tests.harness.faults.fault_cluster import FaultCluster

_BROKER = re.compile(r"\bbroker (\d+)\b")
_PARTITION = re.compile(r" \[(\d+)\] ")


class Refusal(NamedTuple):
    """An error in an answer to a client.

    `at` is seconds of the wall clock; `broker_id` is -1 if librdkafka did not name the broker.
    """

    partition: int
    broker_id: int
    at: float
    text: str


def refusal(text: str, partition: int | None = None) -> Refusal:
    """An error that librdkafka reports now. Its text names the broker and, if `partition` is not
    given, the partition (`ProduceRequest for TOPIC [0] with`)."""
    named = _PARTITION.search(text) if partition is None else None
    broker = _BROKER.search(text)
    return Refusal(
        int(named[1]) if named else -1 if partition is None else partition,
        int(broker[1]) if broker else -1,
        time.time(),
        text,
    )


class Leaderships:
    """The leaders of each partition, each with the time of its election (seconds, wall clock)."""

    def __init__(self) -> None:
        self._changes: dict[int, list[tuple[float, int]]] = {}

    def note(self, partition: int, at: float, leader: int) -> None:
        """Record a leader. The changes of one partition must come in the order of time."""
        self._changes.setdefault(partition, []).append((at, leader))

    def was_former(self, answer: Refusal) -> bool:
        """Whether an answer came from a broker that had led the partition, and no longer did."""
        changes = self._changes.get(answer.partition, [])
        now = bisect_right(changes, (answer.at, inf))
        led = [leader for _, leader in changes[:now]]
        return bool(led) and led[-1] != answer.broker_id and answer.broker_id in led

    def allow(self, answers: Sequence[Refusal], found: Anomalies, allowed: Anomalies) -> None:
        """Move answers of former leaders from the anomalies to the allowed ones."""
        for answer in answers:
            for name, cases in found.items():
                if answer.text in cases and self.was_former(answer):
                    cases.remove(answer.text)
                    allowed.setdefault(f"{name}, by a former leader", []).append(answer.text)


@contextmanager
def watched(cluster: FaultCluster, topic: str, partitions: int) -> Iterator[Leaderships]:
    """Record the leaders of a topic in its znodes from now on."""
    found = Leaderships()

    def note(partition: int, data: bytes | None, stat: ZnodeStat | None, _: object) -> None:
        if data is not None and stat is not None:
            found.note(partition, stat.mtime / 1000, json.loads(data)["leader"])

    with cluster.client() as client:
        for partition in range(partitions):
            path = f"/brokers/topics/{topic}/partitions/{partition}/state"
            client.DataWatch(path, partial(note, partition))
        yield found
