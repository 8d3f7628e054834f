"""docs/how-to/migrate-a-cluster.md as an operator would do it.

Three brokers of Apache Kafka 3.9.1 are exchanged for ours one by one, and their files are not
touched. The commands are those of the page.

Without Apache Kafka's jars or keytool nothing is checked, and the end of the run says so.
"""

from __future__ import annotations

import re
import shlex
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.harness.plugins import unchecked
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import JavaAuthority, can_keytool

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate-a-cluster.md"
BROKERS = (1, 2, 3)
TOPIC, GROUP, PARTITIONS = "orders", "readers", 6
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORDS = {"admin": "between", "alice": "hers", "bob": "his"}
SETTINGS = """
broker.id={id}
listeners=SASL_SSL://localhost:{port}
log.dirs={home}/logs
zookeeper.connect={zookeeper}
zookeeper.session.timeout.ms=6000
security.inter.broker.protocol=SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
ssl.keystore.location={keystore}
ssl.keystore.password=secret
ssl.key.password=secret
ssl.truststore.location={truststore}
ssl.truststore.password=secret
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
auto.create.topics.enable=false
controlled.shutdown.retry.backoff.ms=500
"""


def commands(heading: str) -> list[str]:
    """The command lines of a chapter of the page."""
    chapter = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        line
        for block in re.findall(r"```sh\n(.*?)```", chapter, re.S)
        for line in block.splitlines()
    ]


class Broker(ServerProcess):
    """Ours and Apache Kafka's say alike that they have started; there is no listener in clear."""

    def launch(self) -> None:
        self._lives = self._starts()
        super().launch()

    def answers(self) -> bool:
        return self._starts() > self._lives

    def _starts(self) -> int:
        return len(re.findall(r"\[KafkaServer id=\d\] started", self.output_text()))


class Machine:
    """One broker's machine before the migration; `home` stands for the page's `/etc/kafka`."""

    def __init__(
        self, home: Path, broker_id: int, zookeeper: str, keystore: Path, truststore: Path
    ) -> None:
        home.mkdir()
        self.home, self.port = home, free_port()
        self.properties = home / "server.properties"
        settings = SETTINGS.format(
            id=broker_id,
            port=self.port,
            home=home,
            zookeeper=zookeeper,
            keystore=keystore,
            truststore=truststore,
        )
        self.properties.write_text(settings)
        login = f'{SCRAM} username="admin" password="{PASSWORDS["admin"]}";'
        client = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": login,
            "ssl.truststore.location": str(truststore),
            "ssl.truststore.password": "secret",
        }
        self.config = apache_kafka.write_properties(home / "admin.properties", client)
        self.apache = self._server(
            apache_kafka.java_command(
                apache_kafka.BROKER, str(self.properties), heap_mb=512, level="INFO"
            )
        )
        (start,) = [line for line in commands("Each broker") if " server start " in line]
        self.ours = self._server(self.words(start))

    def words(self, command: str) -> list[str]:
        """A command of the page, for this machine."""
        found = command.replace("/etc/kafka", str(self.home))
        found = found.replace("kafka-1:9093", f"localhost:{self.port}")
        return [str(Path(sys.executable).parent / "kafkapy"), *shlex.split(found)[1:]]

    def run(self, command: str) -> str:
        done = subprocess.run(self.words(command), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _server(self, command: list[str]) -> Broker:
        return Broker(command, self.port, Path(f"{self.home}.out"), self.home.name)


class Company:
    """Three machines, a ZooKeeper, and what was set up on them before anybody heard of kafkapy."""

    def __init__(self, directory: Path) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        (directory / "jks").mkdir()
        authority = JavaAuthority(directory / "jks", "JKS")
        self._ca = directory / "ca.pem"
        self._ca.write_text(ssl.DER_cert_to_PEM_cert(authority.certificate("ca")))
        connect = self.zookeeper.connect()
        stores = authority.keystore("brokers", "localhost"), authority.truststore()
        self.machines = [
            Machine(directory / f"machine-{id}", id, connect, *stores) for id in BROKERS
        ]
        self.admin = self.machines[0]

    @property
    def servers(self) -> str:
        return ",".join(f"localhost:{machine.port}" for machine in self.machines)

    def client(self, user: str) -> dict[str, str | int]:
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self._ca),
            **QUIET,
        }

    def set_up(self) -> None:
        """By Apache Kafka's own tools; the users are made before any broker has started."""
        self.zookeeper.start()
        for user, password in PASSWORDS.items():
            _apache(
                *("kafka.admin.ConfigCommand", "--zookeeper", self.zookeeper.connect()),
                *("--alter", "--entity-type", "users", "--entity-name", user),
                *("--add-config", f"SCRAM-SHA-512=[password={password}]"),
            )
        for machine in self.machines:
            machine.apache.launch()
        for machine in self.machines:
            machine.apache.wait_until_ready()
        at = ("--bootstrap-server", self.servers, "--command-config", str(self.admin.config))
        _apache(
            *(
                apache_kafka.TOPICS,
                *at,
                "--create",
                "--topic",
                TOPIC,
                "--partitions",
                str(PARTITIONS),
            ),
            *("--config", "retention.ms=-1", "--config", "segment.bytes=65536"),
        )
        _apache(
            *("kafka.admin.AclCommand", *at, "--add", "--allow-principal", "User:alice"),
            *("--producer", "--consumer", "--topic", TOPIC, "--group", GROUP),
        )

    def is_in_sync(self) -> bool:
        """As the page's command tells; in this process, since it is asked again and again."""
        done = kafkapy(*self.admin.words(commands("Each broker")[-1])[1:])
        assert done.status == 0, done.stderr
        return done.stdout == ""

    def stop(self) -> None:
        for machine in self.machines:
            for server in (machine.apache, machine.ours):
                if server.running:
                    server.stop()
        if self.zookeeper.running:
            self.zookeeper.stop()


class Work(threading.Thread):
    """The constant load of the company: writes alice's orders, and reads them in a group."""

    def __init__(self, company: Company) -> None:
        super().__init__(name="orders")
        self._company = company
        self._end = threading.Event()
        self.acked: list[bytes] = []
        self.read: list[bytes] = []
        self.failed: list[str] = []
        self.start()

    def run(self) -> None:
        settings = {"enable.idempotence": True, "max.in.flight": 1, "linger.ms": 20}
        producer = Producer({**self._company.client("alice"), **settings})
        consumer = Consumer(
            {
                **self._company.client("alice"),
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
            }
        )
        consumer.subscribe([TOPIC])
        number = 0

        def told(error: object, message: Any) -> None:
            if error is not None:
                self.failed.append(str(error))
            else:
                self.acked.append(message.value())

        def poll(seconds: float) -> None:
            found = [message for message in consumer.consume(500, seconds) if not message.error()]
            self.read += [message.value() for message in found]

        def is_all_read() -> bool:
            poll(0.5)
            return set(self.acked) <= set(self.read)

        try:
            while not self._end.is_set():
                for _ in range(10):
                    producer.produce(TOPIC, b"order %d" % number, on_delivery=told)
                    number += 1
                producer.poll(0)
                poll(0.02)
            assert producer.flush(60) == 0
            wait_until(is_all_read, "all is read")
        except (AssertionError, KafkaException) as error:
            self.failed.append(repr(error))
        finally:
            consumer.close()

    def end(self) -> None:
        self._end.set()
        self.join()


def _apache(main_class: str, *words: str) -> None:
    done = apache_kafka.run_tool(main_class, *words)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company | None]:
    if not apache_kafka.installed():
        unchecked.note("the way from Apache Kafka to kafkapy", "Apache Kafka is not installed")
        yield None
        return
    if not can_keytool("the way from Apache Kafka to kafkapy"):
        yield None
        return
    (tmp_path / "jaas.conf").write_text(
        f'KafkaServer {{ {SCRAM} username="admin" password="{PASSWORDS["admin"]}"; }};\n'
    )
    options = f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", options)
        patch.setenv("JAVA_TOOL_OPTIONS", options)  # what kafka-run-class.sh makes of KAFKA_OPTS
        made = Company(tmp_path)
        try:
            made.set_up()
            yield made
        finally:
            made.stop()


def values(company: Company) -> list[bytes]:
    """The records of the topic, each partition from its beginning."""
    with_end = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({**company.client("alice"), **with_end, "enable.auto.commit": False})
    found: list[bytes] = []
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    left = PARTITIONS
    while left:
        for message in consumer.consume(1000, 1.0):
            if message.error():
                left -= 1
            else:
                found.append(message.value())
    consumer.close()
    return found


def is_refused(company: Company, user: str) -> bool:
    """Whether the user may not write orders."""
    errors: list[str] = []
    producer = Producer(company.client(user))
    producer.produce(TOPIC, b"no order", on_delivery=lambda error, _: errors.append(str(error)))
    assert producer.flush(30) == 0
    return "authoriz" in errors[0].lower()


def state_of(company: Company) -> list[str]:
    """The topics with their configs and replicas, and the ACLs: lines."""
    _, topics, acls, _ = commands("After")
    found = company.admin.run(topics) + company.admin.run(acls)
    found = re.sub(r"Leader: \d+|Isr: [\d,]+", "", found)
    # Brokers list a topic's configs each in an order of their own.
    return sorted(" ".join(sorted(re.split("[ \t,]", line))) for line in found.splitlines())


def test_brokers_are_exchanged_one_by_one(company: Company | None) -> None:
    if company is None:
        return
    files = {
        file: file.read_bytes()
        for machine in company.machines
        for file in (machine.properties, machine.config)
    }
    work = Work(company)
    try:
        wait_until(lambda: len(work.read) > 500, "orders are read")
        before = state_of(company)
        assert company.admin.run(commands("Before")[0]) == ""
        for machine in company.machines:
            machine.apache.stop()
            machine.ours.start()
            wait_until(company.is_in_sync, f"{machine.home.name} is in sync", 60)
            enough = len(work.acked) + 200
            wait_until(lambda enough=enough: len(work.acked) > enough, "orders are taken")
        elect, _, _, groups = commands("After")
        company.admin.run(elect)
        assert f"{GROUP} " in company.admin.run(groups)
    finally:
        work.end()
    assert work.failed == []
    assert sorted(values(company)) == sorted(work.acked)
    assert set(work.read) == set(work.acked)
    again = len(work.read) - len(set(work.read))
    assert again < len(work.acked) / 4, "no more than what was not yet committed"
    assert state_of(company) == before
    assert is_refused(company, "bob")
    assert {file: file.read_bytes() for file in files} == files

    # Go back, with one broker.
    machine = company.machines[1]
    machine.run(commands("Go back")[0])
    assert machine.ours.wait() == 0
    machine.apache.start()
    wait_until(company.is_in_sync, "the broker that went back is in sync", 60)
    assert sorted(values(company)) == sorted(work.acked)
