"""Large fetches are bytes of the log's files, whatever the client does meanwhile."""

from __future__ import annotations

import struct

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from dev.bench.loads import fetch_request
from tests.conftest import BrokerFactory
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until

VALUE_BYTES = 10_000
COUNT = 1_200
BEFORE_RECORDS = 48  # of a Fetch v4 response with one partition, besides its topic's name


def filled(broker: BrokerProcess, topic: str, word: bytes = b"%d ") -> bytes:
    """Make a topic; what its one segment holds."""
    create_topic(broker.bootstrap_servers, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": "5"})
    for number in range(COUNT):
        producer.produce(topic, (word % number) * (VALUE_BYTES // 5))
    assert producer.flush(60) == 0
    [segment] = (broker.log_dir / f"{topic}-0").glob("*.log")
    return segment.read_bytes()


def records_of(response: bytes | None, topic: str) -> bytes:
    assert response is not None
    records = response[len(topic) + BEFORE_RECORDS :]
    [size] = struct.unpack_from(">i", response, len(topic) + BEFORE_RECORDS - 4)
    assert size == len(records)
    return records


def test_a_slow_client_gets_all_of_several_large_answers(broker: BrokerProcess) -> None:
    """The first answers fill the socket and both its buffers, so the rest waits in the files, and
    the requests behind them on the connection, until the client reads."""
    topic = "slowly-read"
    content = filled(broker, topic)
    assert len(content) > 8 << 20
    with RawConnection(broker.bootstrap_servers) as client:
        for _ in range(4):
            client.send(fetch_request(topic, 0, len(content)))
        client.send(fetch_request(topic, COUNT, 1 << 20, max_wait_ms=0))
        with RawConnection(broker.bootstrap_servers) as other:  # nobody else waits for it
            other.send(fetch_request(topic, 0, len(content)))
            assert records_of(other.read_frame(), topic) == content
        for _ in range(4):
            assert records_of(client.read_frame(), topic) == content
        assert records_of(client.read_frame(), topic) == b""


def test_a_slow_client_of_a_topic_that_is_deleted_and_made_again(broker: BrokerProcess) -> None:
    """The response in progress keeps the records of the deleted topic."""
    topic = "made-again"
    content = filled(broker, topic)
    with RawConnection(broker.bootstrap_servers) as client:
        client.send(fetch_request(topic, 0, len(content)))
        with RawConnection(broker.bootstrap_servers) as other:  # the fetch has been handled
            other.send(fetch_request(topic, COUNT, 1 << 20, max_wait_ms=0))
            assert records_of(other.read_frame(), topic) == b""
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(timeout=60)
        wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, "it is gone")
        filled(broker, topic, b"%d another ")
        assert records_of(client.read_frame(), topic) == content


def test_a_client_that_goes_away_in_the_middle_costs_nobody_anything(
    broker_factory: BrokerFactory,
) -> None:
    broker = broker_factory({})
    topic = "left"
    content = filled(broker, topic)
    for _ in range(3):
        client = RawConnection(broker.bootstrap_servers)
        client.send(fetch_request(topic, 0, len(content)))
        assert client._read(100)
        client.close()
    with RawConnection(broker.bootstrap_servers) as client:
        client.send(fetch_request(topic, 0, len(content)))
        assert records_of(client.read_frame(), topic) == content
    assert broker.stop() in (0, 143)
    wait_until(lambda: not broker.running, "it has stopped")
