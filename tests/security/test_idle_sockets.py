"""Sockets that are opened and say nothing, at every kind of listener of a real broker.

What a user would lose: the broker, which ended when its descriptors did; and the limits of
connections, which did not hold for clients that never ended their handshake.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.harness.processes.broker_process import answers_api_versions, free_port
from tests.harness.processes.waiting import wait_until
from tests.harness.protocol.quota_requests import produced
from tests.harness.security.certificates import can_make
from tests.harness.security.secure_broker import SecureBroker, Way

DESCRIPTORS = 256
SILENT = 300
LIMIT_S = 30.0


def limited(broker: SecureBroker, descriptors: int) -> SecureBroker:
    """The same broker, in a process that may have so many descriptors."""
    script = f'ulimit -n {descriptors}; exec "$@"'
    broker.command[:0] = ["sh", "-c", script, "sh"]
    return broker


def silent(port: int, stack: ExitStack) -> socket.socket:
    """A socket to a port that says nothing."""
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), LIMIT_S))


def crowd(port: int, stack: ExitStack) -> None:
    """So many of them, or until no more are accepted and the backlog is full."""
    for _ in range(SILENT):
        try:
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 2))
        except OSError:
            return


def is_closed(connection: socket.socket) -> bool:
    """Whether the broker closes it within the limit."""
    connection.settimeout(LIMIT_S)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def is_open(connection: socket.socket) -> bool:
    """Whether the broker has not closed it until now."""
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def make(cluster: Cluster, topic: str) -> None:
    """Make a topic by a connection that is there."""
    row = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[row], timeout_ms=30_000)
    [result] = cluster.controller_request(request).topics
    assert result.error_code == 0, result


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., SecureBroker]]:
    with ExitStack() as stack:

        def run(overrides: dict[str, str], descriptors: int = 4096) -> SecureBroker:
            broker = limited(SecureBroker(tmp_path / "secure", overrides), descriptors)
            return stack.enter_context(broker)

        yield run


@pytest.mark.parametrize("listener", ["PLAINTEXT", "TLS", "BOTH", "METRICS"])
def test_descriptors_run_out_and_the_broker_goes_on(
    start: Callable[..., SecureBroker], listener: str
) -> None:
    if not can_make("a broker whose descriptors run out"):
        return
    metrics = free_port()
    broker = start({"kafkapy.metrics.port": str(metrics)}, DESCRIPTORS)
    ports = {"PLAINTEXT": broker.port, "METRICS": metrics}
    port = ports[listener] if listener in ports else broker.port_of(listener)
    with Cluster(broker.bootstrap_servers) as cluster:
        make(cluster, "t")
        with ExitStack() as stack:
            crowd(port, stack)
            # Who is connected already is served, and logs have descriptors for their files.
            for number in range(20):
                make(cluster, f"more-{number}")
        wait_until(
            lambda: answers_api_versions("127.0.0.1", broker.port),
            "new connections are served when descriptors are free again",
        )
    [topic] = produced(broker.bootstrap_servers, "t", 10).responses
    assert topic.partition_responses[0].error_code == 0
    assert broker.running
    output = broker.output_text()
    assert "FATAL" not in output
    assert "Traceback" not in output
    assert output.count("accepts no connections") <= len(ports) + 4
    assert broker.stop() == 0


@pytest.mark.parametrize("listener", ["TLS", "SASL", "BOTH"])
def test_an_address_has_its_limit_before_the_handshake(
    start: Callable[..., SecureBroker], listener: str
) -> None:
    if not can_make("limits before the handshake"):
        return
    broker = start({"max.connections.per.ip": "5"})
    with ExitStack() as stack:
        early = [silent(broker.port_of(listener), stack) for _ in range(5)]
        late = [silent(broker.port_of(listener), stack) for _ in range(5)]
        assert [is_closed(each) for each in late] == [True] * 5
        assert any(is_open(each) for each in early)
    wait_until(lambda: answers_api_versions("127.0.0.1", broker.port), "the five have left")


@pytest.mark.parametrize("listener", ["TLS", "SASL", "BOTH"])
def test_who_does_not_log_in_is_closed_in_time(
    start: Callable[..., SecureBroker], listener: str
) -> None:
    if not can_make("a limit of time for handshakes"):
        return
    broker = start({"kafkapy.authentication.timeout.ms": "500"})
    with ExitStack() as stack:
        connection = silent(broker.port_of(listener), stack)
        assert is_closed(connection)
        other = silent(broker.port, stack)  # nobody must log in there
        assert is_open(other)


def test_who_opens_many_handshakes_keeps_nobody_out(start: Callable[..., SecureBroker]) -> None:
    if not can_make("a bound of handshakes"):
        return
    broker = start({"kafkapy.max.unauthenticated.connections": "20"})
    with ExitStack() as stack:
        first = silent(broker.port_of("TLS"), stack)
        for _ in range(20):
            silent(broker.port_of("TLS"), stack)
        assert is_closed(first)
        way = Way("TLS")
        with Cluster(broker.servers(way), broker.java(way)) as cluster:
            assert cluster.metadata([]).brokers
