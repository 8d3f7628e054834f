"""Passwords in the dynamic configs of a broker: ours are read by Apache Kafka 3.9, and its by us.

What a user would lose: a store gets a new password with its new certificate, and then no broker can
open it without the password in a file; or a broker of the other kind cannot take over.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from kazoo.client import KazooClient

from kafkapy.security.password_encoder import CBC, GCM, PasswordEncoder
from tests.harness.cores.ports import SeededRandom
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import zookeeper_for
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity, make_pkcs12
from tests.harness.security.secure_broker import PLAIN_LOGIN

BROKER_ID = "1"
LOCATION = "listener.name.tls.ssl.keystore.location"
PASSWORD = "listener.name.tls.ssl.keystore.password"
JAAS = "listener.name.sasl.plain.sasl.jaas.config"

JAVA = """
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

public class Encoder {
    // A secret and a password, then of each cipher its name and what we encoded with it.
    public static void main(String[] words) throws Exception {
        for (int at = 2; at < words.length; at += 2) {
            var secret = new Password(words[0]);
            var encoder = PasswordEncoder.encrypting(secret, null, words[at], 128, 4096);
            System.out.println(encoder.encode(new Password(words[1])));
            System.out.println(encoder.decode(words[at + 1]).value());
        }
    }
}
"""


class Store(NamedTuple):
    """A PKCS12 keystore of its own password, and who believes its certificate."""

    location: Path
    password: str
    believing: ssl.SSLContext

    @property
    def change(self) -> str:
        return f"{LOCATION}={self.location},{PASSWORD}={self.password}"


def make_store(directory: Path, password: str) -> Store:
    directory.mkdir()
    identity = make_identity(directory, "broker")
    believing = ssl.create_default_context(cafile=str(identity.with_suffix(".crt")))
    return Store(make_pkcs12(identity, password), password, believing)


class Cluster:
    """A ZooKeeper and one broker id; the stores are of the same name and of different keys."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.zookeeper = zookeeper_for(directory).start()
        self.one, self.two, self.three = (
            make_store(directory / name, f"password-of-{name}") for name in ("one", "two", "three")
        )
        self.port, self.tls_port, self.sasl_port = free_port(), free_port(), free_port()
        self.running: ServerProcess | None = None

    def properties(self, **secrets: str) -> dict[str, str]:
        """Without any password."""
        return {
            "broker.id": BROKER_ID,
            "zookeeper.connect": self.zookeeper.connect(),
            "zookeeper.session.timeout.ms": "3000",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},TLS://127.0.0.1:{self.tls_port},"
            f"SASL://127.0.0.1:{self.sasl_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            LOCATION: str(self.one.location),
            "listener.name.tls.ssl.keystore.type": "PKCS12",
            **{f"password.encoder.{key.replace('_', '.')}": s for key, s in secrets.items()},
        }

    def start_ours(self, **secrets: str) -> BrokerProcess:
        ours = BrokerProcess(self.directory / "ours", self.properties(**secrets))
        self._start(ours)
        return ours

    def start_apache(self, **secrets: str) -> None:
        properties = self.properties(**secrets)
        self._start(
            apache_kafka.ApacheBroker(self.directory / "apache", properties, self.zookeeper)
        )

    def _start(self, broker: ServerProcess) -> None:
        broker.port, broker.bootstrap_servers = self.port, f"127.0.0.1:{self.port}"
        self.running = broker
        broker.start()

    def stop(self) -> None:
        assert self.running is not None
        self.running.stop()

    def end(self) -> None:
        if self.running is not None and self.running.running:
            self.running.kill()
        self.zookeeper.release()

    def configs(self, *words: str, zookeeper: bool = False) -> str:
        where = ("--bootstrap-server", f"127.0.0.1:{self.port}")
        if zookeeper:
            where = ("--zookeeper", self.zookeeper.connect())
        entity = ("--entity-type", "brokers", "--entity-name", BROKER_ID)
        done = kafkapy("configs", *where, *entity, *words)
        assert done.status == 0, done.stderr
        return done.stdout

    def stored(self) -> dict[str, str]:
        client = KazooClient(self.zookeeper.connect())
        client.start()
        try:
            found: dict[str, str] = orjson.loads(client.get(f"/config/brokers/{BROKER_ID}")[0])[
                "config"
            ]
            return found
        finally:
            client.stop()
            client.close()

    def shows(self, store: Store) -> bool:
        """Whether the TLS listener has this store's certificate."""
        with socket.create_connection(("127.0.0.1", self.tls_port), 30) as plain:
            try:
                store.believing.wrap_socket(plain, server_hostname="localhost").close()
            except ssl.SSLCertVerificationError:
                return False
        return True

    def lets_in(self, user: str, password: str) -> bool:
        config = apache_kafka.write_properties(
            self.directory / "client.properties",
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{PLAIN_LOGIN} username="{user}" password="{password}";',
            },
        )
        where = ("--bootstrap-server", f"127.0.0.1:{self.sasl_port}")
        return kafkapy("topics", *where, "--command-config", str(config), "--list").status == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster | None]:
    if not can_make("passwords in dynamic configs"):
        yield None
        return
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.end()


def write_before_the_first_start(cluster: Cluster, secret: str) -> None:
    """Write to ZooKeeper the passwords that a server.properties without any needs."""
    jaas = f'{PLAIN_LOGIN} user_alice="in-wonderland";'
    encoder = f"password.encoder.secret={secret}"
    change = f"{PASSWORD}={cluster.one.password},{JAAS}=[{jaas}],{encoder}"
    cluster.configs("--alter", "--add-config", change, zookeeper=True)
    stored = cluster.stored()
    assert stored.keys() == {PASSWORD, JAAS}
    assert PasswordEncoder(secret).decode(stored[PASSWORD]) == cluster.one.password


def test_a_broker_without_passwords_in_its_properties(cluster: Cluster | None) -> None:
    if cluster is None:
        return
    write_before_the_first_start(cluster, "old")
    ours = cluster.start_ours(secret="old")
    assert cluster.shows(cluster.one)
    assert cluster.lets_in("alice", "in-wonderland")
    assert not cluster.lets_in("alice", "anywhere")
    cluster.configs("--alter", "--add-config", cluster.two.change)
    assert cluster.shows(cluster.two)
    assert f"{PASSWORD}=null sensitive=true" in cluster.configs("--describe")
    assert cluster.stored()[PASSWORD].count(":") == 8
    cluster.stop()

    # A new secret: what was stored under the old one is stored under the new.
    cluster.start_ours(secret="new", old_secret="old")
    assert cluster.shows(cluster.two)
    assert PasswordEncoder("new").decode(cluster.stored()[PASSWORD]) == cluster.two.password
    assert cluster.lets_in("alice", "in-wonderland")
    cluster.stop()
    cluster.start_ours(secret="new")
    assert cluster.shows(cluster.two)

    said = ours.output_text()
    for secret in (cluster.one.password, cluster.two.password, "in-wonderland", "encryptedPass"):
        assert secret not in said
    assert "Traceback" not in said


def test_passwords_of_another_secret_are_named_and_not_used(cluster: Cluster | None) -> None:
    if cluster is None:
        return
    write_before_the_first_start(cluster, "s")
    broker = BrokerProcess(cluster.directory / "ours", cluster.properties(secret="another"))
    broker.launch()
    assert broker.wait() == 1
    said = broker.output_text()
    assert f"Dynamic password config {PASSWORD} could not be decoded" in said
    assert "Traceback" not in said
    expected = f"listener TLS (SSL): {LOCATION}={cluster.one.location} cannot be used: "
    assert said.splitlines()[-1].startswith(expected), said


if apache_kafka.installed():

    def test_apache_kafka_reads_ours_and_we_read_its(cluster: Cluster | None) -> None:
        if cluster is None:
            return
        write_before_the_first_start(cluster, "s")
        cluster.start_ours(secret="s")
        cluster.configs("--alter", "--add-config", cluster.two.change)
        cluster.stop()
        cluster.start_apache(secret="s")
        assert cluster.shows(cluster.two)
        assert cluster.lets_in("alice", "in-wonderland")
        ours = cluster.stored()
        cluster.configs("--alter", "--add-config", cluster.three.change)
        wait_until(lambda: cluster.shows(cluster.three), "Apache Kafka has the third store")
        assert cluster.stored()[JAAS] != ours[JAAS]
        cluster.stop()
        cluster.start_ours(secret="s")
        assert cluster.shows(cluster.three)
        assert cluster.lets_in("alice", "in-wonderland")

    def test_kafkas_encoder_and_ours_read_each_other(tmp_path: Path) -> None:
        source = tmp_path / "Encoder.java"
        source.write_text(JAVA)
        password, ciphers = "pass,w:o=rd", (CBC, GCM)
        encoders = [
            PasswordEncoder("s3cret", "PBKDF2WithHmacSHA1", cipher, 256, 1024) for cipher in ciphers
        ]
        words = ["s3cret", password]
        for cipher, encoder in zip(ciphers, encoders, strict=True):
            words += [cipher, encoder.encode(password, SeededRandom(1).bytes)]
        command = [apache_kafka.java(), "-cp", str(apache_kafka.jars() / "*"), str(source), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        theirs, read = done.stdout.splitlines()[::2], done.stdout.splitlines()[1::2]
        assert read == [password] * len(ciphers)
        for encoder, encoded in zip(encoders, theirs, strict=True):
            assert encoder.decode(encoded) == password
