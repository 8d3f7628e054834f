"""Events and acknowledgements of a share group's member; the live tests cover whole runs."""

from __future__ import annotations

from typing import Any

from kafkapy.tools.perf.verifiable_share_consumer import VerifiableShareConsumer
from tests.unit.tools.perf.test_verifiable_consumer import Record


class Endless:
    """A `confluent_kafka.ShareConsumer` whose every poll has a record."""

    def __init__(self) -> None:
        self.position = 0
        self.acknowledged: list[int] = []
        self.committed: list[int] = []

    def subscribe(self, topics: list[str]) -> None:
        pass

    def poll(self, timeout_s: float) -> list[Record]:
        self.position += 1
        return [Record(("t", 0, self.position))]

    def acknowledge(self, record: Record) -> None:
        self.acknowledged.append(record.offset())

    def commit_sync(self) -> dict[Any, Any]:
        self.committed += self.acknowledged
        self.acknowledged.clear()
        return {}


def test_a_record_that_was_acknowledged_when_a_signal_came_has_its_event() -> None:
    client: Any = Endless()
    events: list[str] = []
    VerifiableShareConsumer(
        client, lambda event, _: events.append(event), lambda: client.position == 2
    ).run("t")
    assert client.committed == [1, 2]
    read = ["records_consumed", "offsets_acknowledged"]
    assert events == ["startup_complete", *read, *read]
