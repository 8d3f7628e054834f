"""`configs --zookeeper` on a ZooKeeper that no broker has used: the credentials that the first
broker of a cluster logs in with.

What a user would lose: a cluster whose brokers log in by SCRAM could not be set up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.security.secure_broker import SCRAM_LOGIN

MECHANISM = "SCRAM-SHA-256"
USER, PASSWORD = "broker", "p"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("fresh") / "zookeeper") as server:
        yield server


def configs(zookeeper: ZooKeeperServer, user: str, *words: str) -> Outcome:
    entity = ("--entity-type", "users", "--entity-name", user)
    return kafkapy("configs", "--zookeeper", zookeeper.connect(), *entity, *words)


def test_the_first_broker_logs_in_with_them(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    done = configs(zookeeper, USER, "--alter", "--add-config", f"{MECHANISM}=[password={PASSWORD}]")
    assert done.status == 0, done.stderr
    assert done.stdout.endswith(f"Completed updating config for entity: user-principal '{USER}'.\n")
    assert f"{MECHANISM}=salt=" in configs(zookeeper, USER, "--describe").stdout
    login = f'{SCRAM_LOGIN} username="{USER}" password="{PASSWORD}";'
    port = free_port()
    broker = BrokerProcess(
        tmp_path / "broker",
        {
            "broker.id": "1",
            "zookeeper.connect": zookeeper.connect(),
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": login,
        },
    )
    broker.port, broker.bootstrap_servers = port, f"127.0.0.1:{port}"
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": login,
    }
    file = apache_kafka.write_properties(tmp_path / "client.properties", client)
    words = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file))
    with broker:
        made = kafkapy("topics", *words, "--create", "--topic", "t")
        assert (made.stdout, made.status) == ("Created topic t.\n", 0), made.stderr


def test_a_credential_can_be_taken_back(zookeeper: ZooKeeperServer) -> None:
    configs(zookeeper, "gone", "--alter", "--add-config", f"{MECHANISM}=[password=x]")
    done = configs(zookeeper, "gone", "--alter", "--delete-config", MECHANISM)
    assert done.status == 0, done.stderr
    assert "salt=" not in configs(zookeeper, "gone", "--describe").stdout


if apache_kafka.installed():

    def test_apache_kafkas_tool_reads_them_and_writes_the_same(tmp_path: Path) -> None:
        """Each on a ZooKeeper of its own, on which nothing else has been."""
        change = ("--alter", "--add-config", f"{MECHANISM}=[iterations=8192,password={PASSWORD}]")
        entity = ("--entity-type", "users", "--entity-name", "u")
        seen = []
        for kind in ("kafkapy", "apache"):
            with ZooKeeperServer(tmp_path / kind) as server:
                words = ("--zookeeper", server.connect(), *entity)
                if kind == "kafkapy":
                    assert kafkapy("configs", *words, *change).status == 0
                else:
                    done = apache_kafka.run_tool("kafka.admin.ConfigCommand", *words, *change)
                    assert done.returncode == 0, done.stdout + done.stderr
                shown = apache_kafka.run_tool("kafka.admin.ConfigCommand", *words, "--describe")
                assert f"{MECHANISM}=salt=" in shown.stdout.decode(), shown.stderr
                paths = ("/config", "/config/users", "/config/changes", "/config/users/u")
                listed = [
                    kafkapy("zookeeper-shell", server.connect(), "ls", path).stdout
                    for path in paths
                ]
                told = "/config/changes/config_change_0000000000"
                listed.append(kafkapy("zookeeper-shell", server.connect(), "get", told).stdout)
                seen.append([text.replace(server.connect(), "") for text in listed])
        assert seen[0] == seen[1]
