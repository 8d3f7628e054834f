"""Workarounds for librdkafka's consumers, without which chaos tests report unread partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.harness.faults import chaos_workload
from tests.harness.faults.anomalies import History
from tests.harness.faults.chaos_workload import Poller


class RefusedConsumer:
    """A consumer whose next poll reports an error."""

    def __init__(self, config: object, logger: object) -> None:
        self.calls: list[str] = []
        self.error: KafkaError | None = None

    def subscribe(self, topics: list[str]) -> None:
        self.calls.append(f"subscribe {topics}")

    def unsubscribe(self) -> None:
        self.calls.append("unsubscribe")

    def consume(self, records: int, timeout_s: float) -> list[Any]:
        return [SimpleNamespace(error=lambda: self.error, partition=lambda: 0)]


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (KafkaError.NOT_COORDINATOR, ["unsubscribe", "subscribe ['orders']"]),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, []),
    ],
)
def test_a_member_subscribes_again_when_its_offsets_were_refused(
    monkeypatch: pytest.MonkeyPatch, code: int, calls: list[str]
) -> None:
    """librdkafka's issue 5586: it does not repeat the OffsetFetch."""
    monkeypatch.setattr(chaos_workload, "Consumer", RefusedConsumer)
    poller = Poller("127.0.0.1:9092", "orders", 1, History(), "member", "group")
    consumer: Any = poller._consumer
    assert consumer.calls == ["subscribe ['orders']"]
    consumer.error = KafkaError(code)
    assert poller.poll() == []
    assert consumer.calls[1:] == calls
