"""Java's key and trust stores as an Apache Kafka installation has them: our broker and our tools
read the files that are there.

What a user would lose: a server.properties and a client.properties that worked have to be rewritten
before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.harness.processes import apache_kafka
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import LIMIT_S
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import (
    JavaAuthority,
    can_keytool,
    can_make,
    keytool,
    make_identity,
    make_pkcs12,
)
from tests.harness.security.secure_broker import SecureBroker, Way

PASSWORD = "changeit"
MUTUAL = Way("MUTUAL")


def believing(store: Path, identity: Path) -> Path:
    """A truststore, by keytool: Java believes no certificate that openssl put into one."""
    words = ("-importcert", "-noprompt", "-alias", "ca", "-file", str(identity.with_suffix(".crt")))
    keytool(store, *words, password=PASSWORD)
    return store


def stores(own: Path, trusted: Path) -> dict[str, str]:
    """Java's properties; the types are its default, JKS, whatever is in the files."""
    return {
        "ssl.keystore.location": str(own),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": PASSWORD,
    }


class Installation:
    """A broker and the properties of a client that it lets in, all with Java's stores."""

    def __init__(self, directory: Path) -> None:
        broker, client = make_identity(directory, "broker"), make_identity(directory, "client")
        its_trust = believing(directory / "kafka.truststore.jks", client)
        self.broker = SecureBroker(
            directory / "broker", stores(make_pkcs12(broker, PASSWORD), its_trust)
        )
        self.broker.identity, self.broker.client_identity = broker, client
        trust = believing(directory / "client.truststore.jks", broker)
        own = make_pkcs12(client, PASSWORD).rename(directory / "client.keystore.jks")
        self.client = {"security.protocol": "SSL", **stores(own, trust)}
        self.config = apache_kafka.write_properties(directory / "client.properties", self.client)
        self.servers = self.broker.servers(MUTUAL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation | None]:
    if not (can_make("Java's stores") and can_keytool("Java's stores")):
        yield None
        return
    installation = Installation(tmp_path_factory.mktemp("java"))
    with installation.broker as broker:
        create_topic(broker.bootstrap_servers, "t")
        yield installation
    assert PASSWORD not in broker.output_text()


def test_librdkafka_and_our_tools(made: Installation | None) -> None:
    if made is None:
        return
    producer = Producer({**made.broker.librdkafka(MUTUAL), **QUIET})
    producer.produce("t", b"from librdkafka")
    assert producer.flush(LIMIT_S) == 0
    words = ("--bootstrap-server", made.servers)
    done = kafkapy("topics", *words, "--command-config", str(made.config), "--list")
    assert (done.status, done.stdout.splitlines()[-1]) == (0, "t"), done.stderr
    line = "from our own producer\n"
    config = ("--producer.config", str(made.config))
    done = kafkapy("console-producer", *words, *config, "--topic", "t", stdin=line)
    assert done.status == 0, done.stderr
    config = ("--consumer.config", str(made.config))
    limits = ("--from-beginning", "--max-messages", "2")
    done = kafkapy("console-consumer", *words, *config, "--topic", "t", *limits)
    assert done.stdout == f"from librdkafka\n{line}", done.stderr


if apache_kafka.installed():

    def test_apache_kafkas_console(made: Installation | None) -> None:
        if made is None:
            return
        config = str(made.config)
        words = ("--bootstrap-server", made.servers, "--topic", "java")
        send_lines_through_java(config, *words)


def test_jks_stores_with_chains_signed_with_sha_1(tmp_path: Path) -> None:
    """Stores as keytool wrote them before Java 9, signed with SHA-1 as was usual then.

    Apache Kafka's clients and ours reach our broker with them.
    """
    if not (can_make("JKS stores") and can_keytool("JKS stores")):
        return
    made = JavaAuthority(tmp_path, "JKS", "SHA1withRSA")
    trust = made.truststore(PASSWORD)
    allowed = {"kafkapy.ssl.allow.sha1": "true"}
    own = stores(made.keystore("broker", "localhost", PASSWORD), trust)
    client = stores(made.keystore("client", "localhost", PASSWORD), trust)
    config = apache_kafka.write_properties(
        tmp_path / "client.properties", {"security.protocol": "SSL", **client, **allowed}
    )
    with SecureBroker(tmp_path / "broker", {**own, **allowed}) as broker:
        words = ("--bootstrap-server", broker.servers(MUTUAL), "--topic", "old")
        create_topic(broker.bootstrap_servers, "old")
        line = "from our own producer\n"
        sent = kafkapy(
            "console-producer", *words, "--producer.config", str(config), stdin=line.encode()
        )
        assert sent.status == 0, sent.stderr
        limits = ("--from-beginning", "--max-messages", "1")
        done = kafkapy("console-consumer", *words, "--consumer.config", str(config), *limits)
        assert done.stdout == line, done.stderr
        described = kafkapy("topics", *words, "--command-config", str(config), "--describe")
        assert described.status == 0, described.stderr
        if apache_kafka.installed():
            java = ("--bootstrap-server", broker.servers(MUTUAL), "--topic", "java")
            send_lines_through_java(str(config), *java)


def test_a_password_that_does_not_open_the_store_is_one_line(
    made: Installation | None, tmp_path: Path
) -> None:
    if made is None:
        return
    wrong = {**made.client, "ssl.truststore.password": "wrong"}
    config = apache_kafka.write_properties(tmp_path / "client.properties", wrong)
    words = ("--bootstrap-server", made.servers, "--command-config", str(config))
    done = kafkapy("topics", *words, "--list")
    assert done.status != 0
    [line] = done.stderr.strip().splitlines()
    assert "client.truststore.jks cannot be used: it is no PKCS12 store, or" in line
    assert "ssl.truststore.password does not open it" in line
