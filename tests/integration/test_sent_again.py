"""What an idempotent producer sends again after a lost answer is in the log once.

librdkafka has five batches in flight. When their answers are lost it sends all five again; a broker
that calls one of them out of order makes it begin a new producer epoch, and then everything that
it has not heard of is written a second time: the `duplicate` of chaos runs.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from kafkapy.record.records import iter_records
from tests.conftest import BrokerFactory
from tests.support.broker_process import free_port
from tests.support.links import Network, Trouble
from tests.support.waiting import wait_until

IN_FLIGHT = 5


def values(log_dir: Path) -> list[bytes | None]:
    """The record values of t-0, as they lie in its one segment now."""
    segment = log_dir / "t-0" / "00000000000000000000.log"
    return [record.value for record in iter_records(segment.read_bytes())]


def test_five_batches_whose_answers_were_lost_with_their_broker(
    tmp_path: Path, broker_factory: BrokerFactory
) -> None:
    """The broker stops cleanly with the batches in its log, and knows all five when it is back."""
    entrance = free_port()
    advertised = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{entrance}",
        "num.partitions": "1",
    }
    broker = broker_factory(advertised, log_dir=tmp_path / "logs")
    with Network() as network:
        link = network.link(entrance, broker.port)
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{entrance}",
                "enable.idempotence": True,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": -1,
            }
        )
        failed: list[str] = []

        def send(value: str) -> None:
            producer.produce(
                "t",
                value,
                on_delivery=lambda error, _: failed.append(str(error)) if error else None,
            )

        send("0")
        assert producer.flush(30) == 0
        network.set(link, Trouble.HOLD_ANSWERS)
        sent = [str(i).encode() for i in range(1 + IN_FLIGHT)]
        for value in sent[1:]:
            send(value.decode())
        wait_until(lambda: values(tmp_path / "logs") == sent, "all five batches in the log")
        broker.stop()
        network.heal(link, broken=True)
        broker.start()
        assert producer.flush(30) == 0
    assert failed == []
    assert values(tmp_path / "logs") == sent
