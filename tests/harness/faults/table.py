"""A compacted topic under faults: each replica keeps the last acknowledged value of each key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kafkapy.record.records import iter_records
from tests.harness.faults.chaos_workload import DELIVERY_LIMIT_S, QUICK_TO_RECONNECT, Sender
from tests.harness.storage import replica_bytes

KEYS = 50
PAUSE_S = 0.005
PADDING = b"x" * 200


class TableWriter(Sender):
    """Sends 0, 1, 2, ... as the values of KEYS keys by turns.

    Retries of an idempotent producer keep the order. `unknown` are the values whose delivery
    failed; they may be in the log nevertheless.
    """

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__("table")
        self.last_acked: dict[int, int] = {}
        self.unknown: dict[int, set[int]] = defaultdict(set)
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,  # see chaos_workload.Writer
                "batch.size": 20_000,  # less than a segment
                "delivery.timeout.ms": int(DELIVERY_LIMIT_S * 1000),
                "request.timeout.ms": 5000,
                **QUICK_TO_RECONNECT,
            }
        )
        self.start()

    def run(self) -> None:
        value = 0
        while not self._stopping.wait(PAUSE_S):
            try:
                self._send(value)
                value += 1
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as failure:
                self.fatal_errors.append(f"table: {failure}")
                return
            self._producer.poll(0)
        self._producer.flush(DELIVERY_LIMIT_S + 10)

    def _send(self, value: int) -> None:
        key, text = value % KEYS, b"%d %s" % (value, PADDING)
        self._producer.produce(
            self._topic, text, key=b"%d" % key, on_delivery=self._answered(key, value)
        )

    def _answered(self, key: int, value: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acked += 1
                self.last_acked[key] = max(value, self.last_acked.get(key, -1))
            else:
                self.failures[error.name()] += 1
                self.unknown[key].add(value)

        return note


def rows_of(homes: Iterable[Path]) -> tuple[dict[int, int], int]:
    """The last value of each key in replicas of different partitions, and the number of records."""
    last: dict[int, int] = {}
    count = 0
    for home in homes:
        for batch in replica_bytes.batches(home):
            for record in iter_records(batch.data):
                assert record.key is not None
                assert record.value is not None
                last[int(record.key)] = int(record.value.split(b" ")[0])
                count += 1
    return last, count


def lost_rows(writer: TableWriter, last: dict[int, int], whose: str) -> list[str]:
    """Keys whose last value is neither the last acknowledged one nor a later, unknown one."""
    found = []
    for key, acked in sorted(writer.last_acked.items()):
        value = last.get(key, -1)
        if value != acked and not (value > acked and value in writer.unknown[key]):
            found.append(f"{whose}: key {key} has {value}, acknowledged {acked}")
    return found
