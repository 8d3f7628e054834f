"""Listeners that are added and removed while a broker runs (KIP-226).

What a user would lose: to give clients another way in, or to take one away, every broker has to be
restarted.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from kazoo.client import KazooClient

from kafkapy.client.cluster import Cluster
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import BrokerProcess, answers_api_versions, free_port
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity

MAP = "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,TLS:SSL"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[BrokerGroup]:
    settings = {"zookeeper.session.timeout.ms": "6000", "listener.security.protocol.map": MAP}
    with BrokerGroup(tmp_path, (1, 2), settings) as group:
        yield group
    for broker in group.brokers.values():
        assert "Traceback" not in broker.output_text()


def alter(broker: BrokerProcess, broker_id: int, *change: str) -> str:
    words = ("--entity-type", "brokers", "--entity-name", str(broker_id), "--alter", *change)
    done = kafkapy("configs", "--bootstrap-server", broker.bootstrap_servers, *words)
    return "" if done.status == 0 else done.stderr


def listeners(broker: BrokerProcess, **more: int) -> str:
    ports = {"PLAINTEXT": broker.port, **more}
    texts = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    return f"listeners=[{texts}]"


def registered(group: BrokerGroup, broker_id: int) -> list[str]:
    client = KazooClient(group.zookeeper.connect())
    client.start()
    try:
        data = orjson.loads(client.get(f"/brokers/ids/{broker_id}")[0])
        return list(data["endpoints"])
    finally:
        client.stop()
        client.close()


def test_a_listener_comes_and_goes(pair: BrokerGroup) -> None:
    ones, twos = free_port(), free_port()
    for broker_id, port in ((1, ones), (2, twos)):
        broker = pair.brokers[broker_id]
        assert alter(broker, broker_id, "--add-config", listeners(broker, SECOND=port)) == ""
    wait_until(lambda: answers_api_versions("127.0.0.1", ones), "the listener is there")
    # Who asks at the new listener is told of the new listeners of all brokers.
    with Cluster(f"127.0.0.1:{ones}") as cluster:

        def told() -> set[tuple[int, int]]:
            brokers = cluster.metadata([], refresh=True).brokers
            return {(broker_id, node.port) for broker_id, node in brokers.items()}

        wait_until(lambda: told() == {(1, ones), (2, twos)}, "each broker's listener is told of")
    first = pair.brokers[1]
    assert registered(pair, 1) == [
        f"PLAINTEXT://127.0.0.1:{first.port}",
        f"SECOND://127.0.0.1:{ones}",
    ]
    with socket.create_connection(("127.0.0.1", ones), LIMIT_S) as open_one:
        assert alter(first, 1, "--delete-config", "listeners") == ""
        assert open_one.recv(1) == b""  # its connections go with it
    wait_until(lambda: len(registered(pair, 1)) == 1, "the registration has it no more")
    assert not answers_api_versions("127.0.0.1", ones)
    # The other broker has its own still, after a restart too.
    pair.brokers[2].restart()
    assert answers_api_versions("127.0.0.1", twos)
    assert len(registered(pair, 2)) == 2


def test_a_listener_with_tls_is_configured_before_it_is_there(
    pair: BrokerGroup, tmp_path: Path
) -> None:
    if not can_make("a TLS listener that is added"):
        return
    identity, port, broker = make_identity(tmp_path, "broker"), free_port(), pair.brokers[1]
    store = f"listener.name.tls.ssl.keystore.location={identity}"
    no_store = alter(broker, 1, "--add-config", listeners(broker, TLS=port))
    assert "listener TLS (SSL): a TLS listener needs a certificate" in no_store
    assert alter(broker, 1, "--add-config", f"{listeners(broker, TLS=port)},{store}") == ""
    context = ssl.create_default_context(cafile=str(identity.with_suffix(".crt")))

    def shakes_hands() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), LIMIT_S) as plain:
                context.wrap_socket(plain, server_hostname="localhost").close()
        except ConnectionError:
            return False
        return True

    wait_until(shakes_hands, "the listener is there")


def test_what_cannot_be_is_refused(pair: BrokerGroup) -> None:
    broker = pair.brokers[1]
    for change, expected in (
        (f"listeners=SECOND://127.0.0.1:{free_port()}", "PLAINTEXT cannot be taken away"),
        ("listener.security.protocol.map=[PLAINTEXT:SASL_PLAINTEXT]", "PLAINTEXT"),
        ("advertised.listeners=SECOND://127.0.0.1:1", "SECOND, which is not among listeners"),
        (listeners(broker, UNHEARD=free_port()), "has no protocol for UNHEARD"),
    ):
        said = alter(broker, 1, "--add-config", change)
        assert expected in said, (change, said)
    assert registered(pair, 1) == [f"PLAINTEXT://127.0.0.1:{broker.port}"]


def test_other_addresses_are_advertised(pair: BrokerGroup) -> None:
    broker = pair.brokers[1]
    advertised = f"advertised.listeners=PLAINTEXT://localhost:{broker.port}"
    assert alter(broker, 1, "--add-config", advertised) == ""
    wait_until(
        lambda: registered(pair, 1) == [f"PLAINTEXT://localhost:{broker.port}"],
        "the registration says so",
    )
