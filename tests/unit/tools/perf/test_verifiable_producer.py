"""Records that the verifiable producer sends, and the events that it prints."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

import pytest

from kafkapy.cli.framework.interrupts import stoppable
from kafkapy.tools.perf.verifiable_producer import NumberedRecords, VerifiableProducer


class FakeProducer:
    """Acknowledges at once; the third record fails."""

    def __init__(self, record: type[Acked]) -> None:
        self.sent: list[tuple[str, str | None, int | None]] = []
        self._record = record

    def produce(
        self,
        topic: str,
        value: str,
        key: str | None,
        on_delivery: Any,
        timestamp: int | None = None,
    ) -> None:
        self.sent.append((value, key, timestamp))
        failed = Failure() if len(self.sent) == 3 else None
        on_delivery(failed, self._record(topic, key, value, len(self.sent) - 1))

    def poll(self, seconds: float) -> int:
        return 0

    def flush(self) -> int:
        return 0


class Failure:
    def name(self) -> str:
        return "_MSG_TIMED_OUT"

    def str(self) -> str:
        return "Local: Message timed out"


class Acked:
    def __init__(self, topic: str, key: str | None, value: str, offset: int) -> None:
        self._parts = (topic, key, value, offset)

    def topic(self) -> str:
        return self._parts[0]

    def key(self) -> bytes | None:
        return self._parts[1].encode() if self._parts[1] else None

    def value(self) -> bytes:
        return self._parts[2].encode()

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._parts[3]


class Signalled(Acked):
    """Raises SIGTERM while its acknowledgement is read."""

    def key(self) -> bytes | None:
        signal.raise_signal(signal.SIGTERM)
        return super().key()


def run(records: NumberedRecords) -> tuple[FakeProducer, list[tuple[str, Mapping[str, Any]]]]:
    client: Any = FakeProducer(Acked)
    events: list[tuple[str, Mapping[str, Any]]] = []
    producer = VerifiableProducer(
        client,
        records,
        lambda name, fields: events.append((name, fields)),
    )
    producer.run()
    producer.finish()
    return client, events


def test_values_and_keys() -> None:
    client, _ = run(NumberedRecords("t", 4, value_prefix=9, repeating_keys=2))
    assert [sent[:2] for sent in client.sent] == [
        ("9.0", "0"),
        ("9.1", "1"),
        ("9.2", "0"),
        ("9.3", "1"),
    ]
    client, _ = run(NumberedRecords("t", 2, create_time_ms=1000))
    assert [sent[:2] for sent in client.sent] == [("0", None), ("1", None)]
    assert all(1000 <= (timestamp or 0) < 61_000 for _, _, timestamp in client.sent)


@pytest.mark.parametrize(("first_ms", "least_ms"), [(0, 1), (2**63 - 1, 2**63 - 1)])
def test_timestamps_are_those_that_librdkafka_has(first_ms: int, least_ms: int) -> None:
    """It takes 0 for the present time, and has no greater number."""
    client, _ = run(NumberedRecords("t", 1, create_time_ms=first_ms))
    [(_, _, timestamp)] = client.sent
    assert least_ms <= (timestamp or 0) < least_ms + 60_000
    assert (timestamp or 0) < 2**63


def test_events() -> None:
    _, events = run(NumberedRecords("t", 3, throughput=1e9))
    assert [name for name, _ in events] == [
        "startup_complete",
        "producer_send_success",
        "producer_send_success",
        "producer_send_error",
        "shutdown_complete",
        "tool_data",
    ]
    assert events[3][1] == {
        "key": None,
        "value": "2",
        "topic": "t",
        "exception": "class _MSG_TIMED_OUT",
        "message": "Local: Message timed out",
    }
    assert {k: v for k, v in events[-1][1].items() if k != "avg_throughput"} == {
        "sent": 3,
        "acked": 2,
        "target_throughput": 1e9,
    }


def test_a_signal_in_the_middle_leaves_the_sums_right() -> None:
    client: Any = FakeProducer(Signalled)
    counts: list[tuple[int, int]] = []

    def run_until_stopped() -> None:
        with stoppable() as interrupt:
            producer = VerifiableProducer(
                client, NumberedRecords("t"), lambda name, fields: None, lambda: interrupt.seen
            )
            producer.run()
            counts.append((producer.sent, producer.acked))

    with pytest.raises(SystemExit):
        run_until_stopped()
    assert counts == [(1, 1)]


def test_a_rate_of_0_ends_when_it_is_stopped() -> None:
    client: Any = FakeProducer(Acked)
    events: list[str] = []
    producer = VerifiableProducer(
        client,
        NumberedRecords("t", throughput=0),
        lambda name, _: events.append(name),
        lambda: bool(events),
    )
    producer.run()
    assert client.sent == []
