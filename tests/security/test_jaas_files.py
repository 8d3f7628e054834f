"""A JAAS file named by KAFKA_OPTS: the same file and the same server.properties are used by Apache
Kafka and by us, for brokers, ZooKeeper and clients.

What a user would lose: an installation that logs in by a JAAS file would have to be rewritten.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import kafkapy

BIN = Path(__file__).parents[2] / "scripts" / "bin"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
JAAS = f"""
// The broker as a client of others, and who may log in at its listeners.
KafkaServer {{
  {PLAIN} required
  username="admin" password="between" user_admin="between" user_alice="not here";
}};
clients.KafkaServer {{ {PLAIN} required user_alice="${{alice.password}}"; }};
KafkaClient {{ {PLAIN} required username="alice" password="${{alice.password}}"; }};
Server {{ {DIGEST} required user_kafka="zk"; }};
Client {{ {DIGEST} required username="kafka" password="zk"; }};
"""
CLIENT = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
BROKERS = ["kafkapy", *(["apache"] if apache_kafka.installed() else [])]
KINDS = [(broker, kind) for broker in BROKERS for kind in (ZooKeeperServer, OwnZooKeeper)]


class Installation:
    """A ZooKeeper and a broker; clients log in at `servers`."""

    def __init__(self, directory: Path, kind: str, zookeeper: type[ZooKeeperServer]) -> None:
        provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        self.zookeeper = zookeeper(directory / "zookeeper", {"authProvider.1": provider})
        port, between = free_port(), free_port()
        settings = {
            "node.id": "1",
            "zookeeper.connect": self.zookeeper.connect(),
            "zookeeper.set.acl": "true",
            "listeners": f"BETWEEN://127.0.0.1:{between},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "BETWEEN:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "BETWEEN",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            # Kafka reads no such key for a listener, and warns: a section wins over it.
            "sasl.jaas.config": f'{PLAIN} required user_alice="not here either";',
        }
        self.broker: ServerProcess
        if kind == "kafkapy":
            self.broker = BrokerProcess(directory / "broker", settings)
        else:
            settings["broker.id"] = "1"
            self.broker = apache_kafka.ApacheBroker(directory / "broker", settings, self.zookeeper)
        self.broker.port, self.servers = port, f"127.0.0.1:{port}"
        self.config = apache_kafka.write_properties(directory / "client.properties", CLIENT)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1].__name__}")
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("jaas")
    (directory / "jaas.conf").write_text(JAAS)
    options = f"-Djava.security.auth.login.config={directory}/jaas.conf -Dalice.password=hers"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", options)
        patch.setenv("JAVA_TOOL_OPTIONS", options)  # what kafka-run-class.sh makes of KAFKA_OPTS
        installation = Installation(directory, *request.param)
        with installation.zookeeper, installation.broker:
            yield installation


def test_our_tools_log_in(made: Installation) -> None:
    words = ("--bootstrap-server", made.servers, "--topic", "ours")
    done = kafkapy("topics", *words, "--create", "--command-config", str(made.config))
    assert (done.stdout, done.status) == ("Created topic ours.\n", 0), done.stderr
    config = ("--producer.config", str(made.config))
    done = kafkapy("console-producer", *words, *config, stdin=b"a line\n")
    assert done.status == 0, done.stderr
    limits = ("--from-beginning", "--max-messages", "1")
    done = kafkapy("console-consumer", *words, "--consumer.config", str(made.config), *limits)
    assert done.stdout == "a line\n", done.stderr


def test_the_drop_in_scripts_take_the_environment(made: Installation) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ("--bootstrap-server", made.servers, "--command-config", str(made.config))
    done = subprocess.run(
        [BIN / "kafka-topics.sh", *words, "--list"],
        env={**os.environ, "PATH": path, "KAFKA_HEAP_OPTS": "-Xmx64m"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Without effect, because there is no JVM here: KAFKA_HEAP_OPTS\n"


def test_what_the_properties_say_wins(made: Installation, tmp_path: Path) -> None:
    own = {**CLIENT, "sasl.jaas.config": f'{PLAIN} required username="alice" password="wrong";'}
    config = apache_kafka.write_properties(tmp_path / "client.properties", own)
    words = ("--bootstrap-server", made.servers, "--command-config", str(config))
    done = kafkapy("topics", *words, "--list")
    assert done.status == 1
    assert "Authentication failed" in done.stderr


def test_zookeeper_knows_the_broker(made: Installation) -> None:
    """The section `Client`: its user owns what the broker wrote, and the shell is that user."""
    shell = ("zookeeper-shell", made.zookeeper.connect())
    assert "'sasl,'kafka\n: cdrwa" in kafkapy(*shell, "getAcl", "/config/topics").stdout
    done = kafkapy(*shell, "create", "/config/topics/mine", "x")
    assert (done.status, "Created" in done.stdout + done.stderr) == (0, True), done.stderr


if apache_kafka.installed():

    def test_apache_kafkas_clients_log_in(made: Installation) -> None:
        words = ("--bootstrap-server", made.servers, "--topic", "java")
        done = kafkapy("topics", *words, "--create", "--command-config", str(made.config))
        assert done.status == 0, done.stderr
        send_lines_through_java(str(made.config), *words)

    def test_apaches_shell_logs_in(made: Installation) -> None:
        """Only the user of the section `Client` may create a node there."""
        words = ("org.apache.zookeeper.ZooKeeperMain", "-server", made.zookeeper.connect())
        lines = "create /config/topics/shell x\ngetAcl /config/topics\n"
        done = apache_kafka.run_tool(*words, stdin=lines.encode())
        said = done.stdout.decode() + done.stderr.decode()
        assert "Created /config/topics/shell" in said, said
        assert "'sasl,'kafka" in said
