"""Idempotence: each batch that a producer resends after an error is in the log once.

librdkafka has up to five batches in flight. If a broker wrongly answers one of them with
OUT_OF_ORDER_SEQUENCE_NUMBER, the producer begins a new epoch and resends all unacknowledged
batches. Those that are in the log already are then there twice: the `duplicate` of chaos runs.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.record.records import iter_records
from tests.conftest import BrokerFactory
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.faults.links import Network, Trouble
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.waiting import wait_until

IN_FLIGHT = 5
PRODUCE_REQUESTS = "network_requestmetrics_requests_total request=Produce"
PARKED_PRODUCES = "server_delayedoperationpurgatory_purgatorysize delayedoperation=Produce"


class Sender:
    """An idempotent producer, each of whose records is a batch of its own."""

    def __init__(self, servers: str, **settings: object) -> None:
        self.failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "reconnect.backoff.max.ms": 200,
                **settings,
            }
        )

    def send(self, value: bytes) -> None:
        def answered(error: object, _message: object) -> None:
            if error is not None:
                self.failed.append(str(error))

        self._producer.produce("t", value, on_delivery=answered)

    def flush(self) -> None:
        """Return when all is acknowledged."""
        assert self._producer.flush(60) == 0
        assert self.failed == []


def values(log_dir: Path) -> list[bytes | None]:
    """The record values of t-0, as they lie in its one segment now."""
    segment = log_dir / "t-0" / "00000000000000000000.log"
    return [record.value for record in iter_records(segment.read_bytes())]


def test_five_batches_whose_answers_were_lost_with_their_broker(
    tmp_path: Path, broker_factory: BrokerFactory
) -> None:
    """The broker stops cleanly with the batches in its log, and knows all five when it is back."""
    entrance = free_port()
    overrides = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{entrance}"}
    logs = tmp_path / "logs"
    broker = broker_factory(overrides, log_dir=logs)
    sent = [str(i).encode() for i in range(1 + IN_FLIGHT)]
    with Network() as network:
        link = network.link(entrance, broker.port)
        sender = Sender(f"127.0.0.1:{entrance}")
        sender.send(sent[0])
        sender.flush()
        network.set(link, Trouble.HOLD_ANSWERS)
        for value in sent[1:]:
            sender.send(value)
        wait_until(lambda: values(logs) == sent, "all five batches in the log")
        broker.stop()
        network.heal(link, broken=True)
        broker.start()
        sender.flush()
    assert values(logs) == sent


def test_batches_in_flight_while_the_isr_is_too_small(tmp_path: Path) -> None:
    """One is written, but not replicated within request.timeout.ms; the next is refused; when the
    third arrives the ISR is full again: it is refused alike, not called out of order."""
    cluster = FaultCluster(tmp_path, 2, {"min.insync.replicas": "2"}, client_links=True)
    ports = {broker_id: free_port() for broker_id in cluster.brokers}
    for broker_id, broker in cluster.brokers.items():
        broker.command += ["--override", f"kafkapy.metrics.port={ports[broker_id]}"]
    with cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("t", 1, 2)])["t"].result(30)
        sender = Sender(cluster.bootstrap_servers, **{"request.timeout.ms": 5000})
        sender.send(b"0")
        sender.flush()
        leader = cluster.leader("t", 0)
        (follower,) = {1, 2} - {leader}
        log = cluster.log_dirs[leader][0]

        def isr() -> list[int]:
            return sorted(cluster.state("t", 0)["isr"])

        def metric(name: str) -> float:
            return samples_of(ports[leader])[name]

        begun = metric(PRODUCE_REQUESTS)
        cluster.network.set(cluster.internal[leader], Trouble.CUT)
        cluster.network.set(cluster.clients[leader], Trouble.HOLD_ANSWERS)
        sender.send(b"written")
        wait_until(lambda: values(log) == [b"0", b"written"], "the first batch in the log")
        wait_until(lambda: isr() == [leader], "the ISR without the follower")
        sender.send(b"refused")
        wait_until(lambda: metric(PRODUCE_REQUESTS) == begun + 2, "the second batch refused")
        wait_until(lambda: metric(PARKED_PRODUCES) == 0, "the first batch timed out")
        cluster.network.heal(cluster.internal[leader], broken=True)
        wait_until(lambda: isr() == [1, 2], "the ISR full again")
        sender.send(b"behind it")
        wait_until(lambda: metric(PRODUCE_REQUESTS) == begun + 3, "the third batch handled")
        cluster.network.heal(cluster.clients[leader], broken=False)
        sender.flush()
        expected = [b"0", b"written", b"refused", b"behind it"]
        assert values(log) == expected
        wait_until(lambda: values(cluster.log_dirs[follower][0]) == expected, "replicas equal")
