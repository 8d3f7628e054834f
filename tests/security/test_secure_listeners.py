"""TLS and SASL listeners, asked by real clients: what they may do, and how others are refused.

What a user would lose: a client whose connection is secured as Kafka's documents say cannot reach
our broker, or one that should not can.
"""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.metadata import MetadataRequest
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import (
    API_VERSIONS_V0,
    BrokerProcess,
    answers_api_versions,
)
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.kafka_python import closed
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make
from tests.harness.security.secure_broker import PASSWORD, USER, WAYS, SecureBroker, Way

with warnings.catch_warnings():  # theirs, not ours
    warnings.simplefilter("ignore")
    import kafka

EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=str)
LARGE = [bytes([i]) * 900_000 for i in range(30)]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker | None]:
    if not can_make("TLS and SASL listeners"):
        yield None
        return
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    with broker:
        yield broker
    assert "Traceback" not in broker.output_text()
    assert "stored_key" not in broker.output_text()
    assert PASSWORD not in broker.output_text()


def produce(config: dict[str, str], topic: str, values: list[bytes]) -> None:
    failures: list[KafkaError] = []
    producer = Producer({**config, **QUIET, "queue.buffering.max.messages": 100_000})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda e, _: failures.append(e) if e else None)
    assert producer.flush(LIMIT_S) == 0
    assert failures == []


def consume(config: dict[str, str], topic: str, count: int, **more: Any) -> list[bytes]:
    consumer = Consumer(
        {
            **config,
            **QUIET,
            "group.id": f"{topic}-{config['bootstrap.servers']}",
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    consumer.subscribe([topic])
    found: list[bytes] = []

    def is_read() -> bool:
        for message in consumer.consume(count - len(found), 0.5):
            if not message.error():
                found.append(message.value())
        return len(found) >= count

    wait_until(is_read, f"{count} records of {topic}")
    consumer.close()
    return found


def digests(values: list[bytes]) -> list[str]:
    """Shorter to compare, and to read when they differ."""
    return [hashlib.sha256(value).hexdigest() for value in values]


@EVERY_WAY
def test_librdkafka(secure: SecureBroker | None, way: Way) -> None:
    if secure is None:
        return
    values = [b"%d" % i for i in range(200)]
    produce(secure.librdkafka(way), f"rd-{way}", values)
    assert consume(secure.librdkafka(way), f"rd-{way}", 200) == values


@pytest.mark.parametrize("way", [WAYS[0], WAYS[-1]], ids=str)
def test_large_fetches_arrive_byte_for_byte(secure: SecureBroker | None, way: Way) -> None:
    if secure is None:
        return
    topic = f"large-{way}"
    produce(secure.librdkafka(way), topic, LARGE)
    large = {"fetch_message_max_bytes": 20_000_000, "fetch_max_bytes": 50_000_000}
    assert digests(consume(secure.librdkafka(way), topic, len(LARGE), **large)) == digests(LARGE)
    plain = {"bootstrap.servers": secure.bootstrap_servers}
    assert digests(consume(plain, topic, len(LARGE), **large)) == digests(LARGE)


@EVERY_WAY
def test_kafka_python(secure: SecureBroker | None, way: Way) -> None:
    if secure is None:
        return
    options: dict[str, Any] = {
        "bootstrap_servers": secure.servers(way),
        "security_protocol": way.protocol,
    }
    if way.protocol.endswith("SSL"):
        options["ssl_cafile"] = str(secure.certificate(secure.identity))
    if way.listener == "MUTUAL":
        options["ssl_certfile"] = str(secure.client_identity)
    if way.mechanism:
        options |= {
            "sasl_mechanism": way.mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }
    topic = f"py-{way}"
    with closed(kafka.KafkaProducer(**options)) as producer:
        for i in range(50):
            producer.send(topic, b"%d" % i)
    options |= {"auto_offset_reset": "earliest", "consumer_timeout_ms": int(LIMIT_S * 1000)}
    with closed(kafka.KafkaConsumer(topic, **options)) as consumer:
        found = [next(consumer).value for _ in range(50)]
    assert found == [b"%d" % i for i in range(50)]


@EVERY_WAY
def test_our_own_tools(secure: SecureBroker | None, way: Way, tmp_path: Path) -> None:
    if secure is None:
        return
    config = apache_kafka.write_properties(tmp_path / "client.properties", secure.java(way))
    words = ("--bootstrap-server", secure.servers(way), "--command-config", str(config))
    topic = f"own-{way}"
    made = kafkapy("topics", *words, "--create", "--topic", topic)
    assert (made.status, made.stdout) == (0, f"Created topic {topic}.\n"), made.stderr
    assert topic in kafkapy("topics", *words, "--list").stdout.splitlines()


if apache_kafka.installed():

    @pytest.mark.parametrize("way", [Way("MUTUAL"), Way("BOTH", "SCRAM-SHA-512")], ids=str)
    def test_apache_kafkas_console(secure: SecureBroker | None, way: Way, tmp_path: Path) -> None:
        if secure is None:
            return
        config = str(apache_kafka.write_properties(tmp_path / "c.properties", secure.java(way)))
        words = ("--bootstrap-server", secure.servers(way), "--topic", f"java-{way}")
        send_lines_through_java(config, *words)

    def test_apache_kafkas_configs_make_users(secure: SecureBroker | None, tmp_path: Path) -> None:
        if secure is None:
            return
        words = ("--bootstrap-server", secure.bootstrap_servers, "--entity-type", "users")
        user = ("--entity-name", "carol")
        change = ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=pa,ss]")
        done = apache_kafka.run_tool("kafka.admin.ConfigCommand", *words, *user, *change)
        assert done.stdout == b"Completed updating config for user carol.\n", done.stderr.decode()
        done = apache_kafka.run_tool("kafka.admin.ConfigCommand", *words, *user, "--describe")
        expected = "SCRAM credential configs for user-principal 'carol' are SCRAM-SHA-256="
        assert done.stdout.decode() == f"{expected}iterations=8192\n", done.stderr.decode()
        assert kafkapy("configs", *words, *user, "--describe").stdout == done.stdout.decode()


def test_our_configs_make_and_remove_users(secure: SecureBroker | None) -> None:
    if secure is None:
        return
    words = ("--bootstrap-server", secure.bootstrap_servers, "--entity-type", "users")
    change = (*words, "--alter", "--entity-name", "dave")
    done = kafkapy("configs", *change, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]")
    assert (done.status, done.stdout) == (0, "Completed updating config for user dave.\n")
    way = Way("SASL", "SCRAM-SHA-256")
    login = {**secure.java(way), "sasl.jaas.config": 'x required username="dave" password="x";'}
    with Cluster(secure.servers(way), login) as cluster:
        assert cluster.metadata([]).brokers
    done = kafkapy("configs", *change, "--delete-config", "SCRAM-SHA-256")
    assert done.status == 0, done.stderr
    with Cluster(secure.servers(way), login) as cluster, pytest.raises(ApiError):
        cluster.metadata([])


@pytest.mark.parametrize(
    ("mechanism", "client_hears", "log_says"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password", "Invalid username"),
        (
            "SCRAM-SHA-256",
            "Authentication failed during authentication due to invalid credentials with SASL"
            " mechanism SCRAM-SHA-256",
            "Invalid client credentials",
        ),
    ],
)
def test_a_wrong_password(
    secure: SecureBroker | None, mechanism: str, client_hears: str, log_says: str
) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    way = Way("BOTH", mechanism)
    properties = secure.java(way, "wrong")
    with Cluster(secure.servers(way), properties) as cluster, pytest.raises(ApiError) as refused:
        cluster.metadata([])
    assert refused.value.message == f"No bootstrap server can be reached. {client_hears}"
    [line] = secure.refusals()[before:]
    assert "INFO Failed authentication with 127.0.0.1:" in line
    assert log_says in line


def test_librdkafka_hears_of_a_wrong_password(secure: SecureBroker | None) -> None:
    if secure is None:
        return
    heard: list[KafkaError] = []
    way = Way("SASL", "SCRAM-SHA-512")
    producer = Producer({**secure.librdkafka(way, "wrong"), "error_cb": heard.append})
    wait_until(lambda: bool(producer.poll(0.1) or heard), "an error of librdkafka")
    assert "SCRAM-SHA-512" in str(heard[0])
    assert heard[0].code() == KafkaError._AUTHENTICATION


@pytest.mark.parametrize(
    "words",
    [
        ("console-producer", "--topic", "t"),
        ("console-consumer", "--topic", "t"),
        ("console-consumer", "--topic", "t", "--group", "g", "--from-beginning"),
        ("producer-perf", "--topic", "t", "--num-records=9", "--record-size=9", "--throughput=-1"),
        ("consumer-perf", "--topic", "t", "--messages", "9", "--timeout", "3600000"),
        ("verifiable-producer", "--topic", "t"),
        ("verifiable-consumer", "--topic", "t", "--group-id", "g"),
    ],
    ids=lambda words: " ".join(words[::3]),
)
def test_a_tool_ends_with_a_refused_login(
    secure: SecureBroker | None, words: tuple[str, ...], tmp_path: Path
) -> None:
    """librdkafka would try for ever, or until the records are too old."""
    if secure is None:
        return
    way = Way("SASL", "SCRAM-SHA-512")
    config = apache_kafka.write_properties(tmp_path / "c.properties", secure.java(way, "wrong"))
    where = ("--bootstrap-server", secure.servers(way), "--command-config", str(config))
    # A process of its own: what it leaves behind would go on trying here.
    command = [sys.executable, "-m", "kafkapy", *words, *where]
    done = subprocess.run(command, input=b"line\n", capture_output=True, timeout=LIMIT_S)
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if b"invalid credentials" in line]
    assert len(told) == 1, done.stderr


def test_a_mechanism_that_is_not_enabled(secure: SecureBroker | None) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    heard: list[KafkaError] = []
    config = secure.librdkafka(Way("SASL", "PLAIN")) | {
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=alice",
    }
    producer = Producer({**config, "error_cb": heard.append})
    wait_until(lambda: bool(producer.poll(0.1) or heard), "an error of librdkafka")
    assert "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" in str(heard[0])
    assert "Unsupported SASL mechanism OAUTHBEARER" in secure.refusals()[before]


@pytest.mark.parametrize("listener", ["TLS", "BOTH"])
def test_a_plaintext_client_of_a_tls_listener(secure: SecureBroker | None, listener: str) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    assert not answers_api_versions("127.0.0.1", secure.port_of(listener))
    wait_until(lambda: len(secure.refusals()) > before, "a line in the log")
    [line] = secure.refusals()[before:]
    assert "SSL handshake failed: the client does not speak TLS" in line


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL"])
def test_a_tls_client_of_a_plaintext_listener(secure: SecureBroker | None, listener: str) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    port = secure.port if listener == "PLAINTEXT" else secure.port_of(listener)
    plain = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    with plain, pytest.raises(OSError):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    [line] = secure.refusals()[before:]
    assert line.split("WARN ")[1].startswith("Closing connection to 127.0.0.1:")
    assert ": the peer begins TLS" in line


def test_who_does_not_log_in_is_not_served(secure: SecureBroker | None) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    address = ("127.0.0.1", secure.port_of("SASL"))
    with socket.create_connection(address, LIMIT_S) as connection:
        connection.sendall(encode_request(MetadataRequest(), 9, 1, "c"))
        assert connection.recv(1) == b""
    assert (
        "Unexpected Kafka request of type METADATA during SASL handshake."
        in (secure.refusals()[before])
    )


def test_a_client_without_its_certificate(secure: SecureBroker | None) -> None:
    if secure is None:
        return
    before = len(secure.refusals())
    way = Way("MUTUAL")
    properties = {k: v for k, v in secure.java(way).items() if "keystore" not in k}
    with Cluster(secure.servers(way), properties) as cluster, pytest.raises(ApiError):
        cluster.metadata([])
    # With TLS 1.3 the client's handshake is over before the broker judges it.
    wait_until(lambda: len(secure.refusals()) > before, "the broker says whom it turned away")
    assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in secure.refusals()[before]


def test_sessions_that_end_are_renewed_or_end(tmp_path: Path) -> None:
    """KIP-368: librdkafka renews its session again and again over one connection."""
    if not can_make("sessions that end"):
        return
    limit_ms = 500
    with SecureBroker(tmp_path, {"connections.max.reauth.ms": str(limit_ms)}) as broker:
        heard: list[KafkaError] = []
        config = broker.librdkafka(Way("SASL", "PLAIN"))
        producer = Producer({**config, **QUIET, "error_cb": heard.append})
        delivered: list[int] = []

        def told(error: Any, message: Any) -> None:
            assert error is None, error
            delivered.append(message.timestamp()[1])

        def have_lived_long() -> bool:
            producer.produce("sessions", b"x", on_delivery=told)
            assert producer.flush(LIMIT_S) == 0
            return delivered[-1] - delivered[0] > 4 * limit_ms

        wait_until(have_lived_long, "several sessions")
        assert heard == []
        assert "session has expired" not in broker.output_text()
        # kafkapy's own tools renew before a request that most of a session's life is over for.
        way = Way("BOTH", "PLAIN")
        with Cluster(broker.servers(way), broker.java(way)) as cluster:
            began_ms = delivered[-1]

            def goes_on() -> bool:
                assert cluster.metadata([], refresh=True).brokers
                return have_lived_long() and delivered[-1] - began_ms > 4 * limit_ms

            wait_until(goes_on, "several sessions of our own client")
            assert "session has expired" not in broker.output_text()


def test_a_broker_stops_although_clients_are_connected(tmp_path: Path) -> None:
    if not can_make("stopping with TLS connections"):
        return
    with SecureBroker(tmp_path) as broker:
        silent = socket.create_connection(("127.0.0.1", broker.port_of("TLS")), LIMIT_S)
        context = ssl.create_default_context(cafile=str(broker.certificate(broker.identity)))
        plain = socket.create_connection(("127.0.0.1", broker.port_of("TLS")), LIMIT_S)
        with silent, context.wrap_socket(plain, server_hostname="127.0.0.1") as idle:
            idle.sendall(API_VERSIONS_V0)
            assert idle.recv(4)
            assert broker.stop(20) == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"listeners": "SSL://127.0.0.1:0"},
            r"listener SSL \(SSL\): a TLS listener needs a certificate",
        ),
        (
            {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "/no.pem"},
            r"ssl\.keystore\.location=/no\.pem cannot be used: No such file",
        ),
        (
            {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "/k.jks"},
            r"ssl\.keystore\.location=/k\.jks cannot be used: No such file",
        ),
        (
            {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "DIGEST-MD5"},
            r"sasl\.enabled\.mechanisms=DIGEST-MD5: served are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    protocol = settings["listeners"].partition(":")[0]
    broker = BrokerProcess(
        tmp_path / "logs", {**settings, "security.inter.broker.protocol": protocol}
    )
    broker.launch()
    assert broker.wait(LIMIT_S) != 0
    [line] = [line for line in broker.output_text().splitlines() if line.strip()]
    assert re.search(said, line)
