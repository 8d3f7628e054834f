"""Topics with known records for Spark tests: record `i` goes to partition `i % partitions`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.harness.processes.topics import QUIET, create_topic

_numbers = itertools.count()


class Topic:
    """A topic of its own name on a broker. `options` reads it."""

    def __init__(
        self,
        servers: str,
        partitions: int = 1,
        config: dict[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        self.servers = servers
        self.name = f"topic-{os.getpid()}-{next(_numbers)}"
        self.partitions = partitions
        self._written = 0
        self._admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        create_topic(servers, self.name, partitions, config, replication_factor)

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, "subscribe": self.name}

    def write(self, count: int) -> list[str]:
        """Append `count` records `value i`, i counting on; returns their values."""
        numbers = range(self._written, self._written + count)
        self._written += count
        self.send((i % self.partitions, b"key %d" % i, b"value %d" % i) for i in numbers)
        return [f"value {i}" for i in numbers]

    def send(
        self,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        headers: Sequence[tuple[str, bytes]] = (),
        **settings: str,
    ) -> None:
        """Append (partition, key, value) records, each with these headers."""
        producer = Producer(
            {"bootstrap.servers": self.servers, "linger.ms": "5", **QUIET, **settings}
        )
        for partition, key, value in records:
            producer.produce(self.name, value, key, partition, headers=list(headers))
        assert producer.flush(30) == 0

    def delete_records(self, partition: int, before: int) -> None:
        """Make `before` the log start offset."""
        place = TopicPartition(self.name, partition, before)
        self._admin.delete_records([place])[place].result(timeout=30)

    def delete(self) -> None:
        self._admin.delete_topics([self.name])[self.name].result(timeout=30)

    def add_partitions(self, total: int) -> None:
        self._admin.create_partitions([NewPartitions(self.name, total)])[self.name].result(
            timeout=30
        )
        self.partitions = total
