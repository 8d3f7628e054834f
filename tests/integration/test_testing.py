"""`kafkapy.testing`: a broker for other people's tests, and the fixtures that pytest finds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.java_properties import parse_properties
from kafkapy.testing import KafkaBroker, Record, SchemaRegistry, topic_records
from kafkapy.tools.local import broker_processes
from kafkapy.tools.local.background import LaunchedServer
from kafkapy.tools.local.broker_processes import is_broker
from tests.harness.processes.waiting import wait_until

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
QUIET = {"log_level": 0}
HOLDER = """
import sys
from kafkapy.testing import KafkaBroker
with KafkaBroker() as broker:
    if "paused" in sys.argv:
        broker.pause()
    print(broker.pid, flush=True)
    sys.stdin.read()
"""
USERS_TESTS = """
import urllib.request
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

def write(servers, topic, value):
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value)
    assert producer.flush(30) == 0

def test_one(kafkapy_broker, kafkapy_topic):
    write(kafkapy_broker.bootstrap_servers, kafkapy_topic, b"1")
    assert [record.value for record in kafkapy_broker.records(kafkapy_topic)] == [b"1"]

def test_another_of_any_name_Ä(kafkapy_broker, kafkapy_topic):
    assert kafkapy_broker.records(kafkapy_topic) == []

def test_the_broker_is_as_the_conftest_wants_it(kafkapy_broker):
    write(kafkapy_broker.bootstrap_servers, "made-by-itself", b"1")
    admin = AdminClient({"bootstrap.servers": kafkapy_broker.bootstrap_servers})
    topics = admin.list_topics("made-by-itself", timeout=30).topics
    assert len(topics["made-by-itself"].partitions) == 3

def test_schemas(kafkapy_broker, kafkapy_schema_registry):
    with urllib.request.urlopen(kafkapy_schema_registry.url + "/subjects", timeout=30) as response:
        assert response.read() == b"[]"
    kafkapy_broker.records("_schemas")
"""
USERS_CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def kafkapy_properties():
    return {"num.partitions": "3"}
"""

SECURED = {
    "listeners": "OURS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "OURS:SASL_PLAINTEXT, PLAINTEXT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.ours.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_alice="secret";',
}
LOGIN = {
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_LOGIN} required username="alice" password="secret";',
}
SECURED_TESTS = f"""
import pytest

@pytest.fixture(scope="session")
def kafkapy_properties():
    return {SECURED}

@pytest.fixture(scope="session")
def kafkapy_client_properties():
    return {LOGIN}

def test_a_topic(kafkapy_broker, kafkapy_topic):
    assert kafkapy_broker.records(kafkapy_topic) == []
"""


def write(broker: KafkaBroker, topic: str, *values: str | bytes, **settings: str) -> None:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET, **given})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def values(broker: KafkaBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_records_behind_deleted_ones_are_read() -> None:
    with KafkaBroker() as broker:
        topic = broker.create_topic("orders")
        write(broker, topic, "0", "1", "2")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        for deleted in admin.delete_records([TopicPartition(topic, 0, 2)]).values():
            deleted.result(30)
        assert values(broker, topic) == [b"2"]


def test_what_a_client_writes_is_read() -> None:
    with KafkaBroker() as broker:
        assert broker.create_topic("orders", 2, {"retention.ms": "-1"}) == "orders"
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        producer.produce("orders", b"b", b"k", 1, headers={"h": b"x"}, timestamp=7)
        producer.produce("orders", None, b"gone", 0, timestamp=8)
        assert producer.flush(30) == 0
        assert broker.records("orders") == [
            Record(0, 0, 8, b"gone", None, ()),
            Record(1, 0, 7, b"k", b"b", (("h", b"x"),)),
        ]
        with pytest.raises(ApiError, match="'nothing' does not exist") as refused:
            broker.records("nothing")
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(ApiError, match="already exists"):
            broker.create_topic("orders")
        with pytest.raises(ApiError, match="Number of partitions must be larger than 0"):
            broker.create_topic("empty", 0)


def test_a_record_above_librdkafkas_default_limit_is_read() -> None:
    """Kafka's consumers have no limit. librdkafka's of 100 MB repeated the fetch for ever."""
    size = 101_000_000
    sizes = {"message.max.bytes": 110_000_000, "socket.request.max.bytes": 120_000_000}
    with KafkaBroker(sizes) as broker:
        topic = broker.create_topic("large")
        write(broker, topic, bytes(size), message_max_bytes="105000000")
        write(broker, topic, "1")
        assert [len(value or b"") for value in values(broker, topic)] == [size, 1]


def test_a_read_waits_neither_for_offsets_nor_for_further_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {}
    offsets: list[int] = []

    class WatchedConsumer(Consumer):
        def __init__(self, config: dict[str, Any]) -> None:
            settings.update(config)
            super().__init__(config)

        def assign(self, partitions: list[TopicPartition]) -> None:
            offsets.extend(partition.offset for partition in partitions)
            super().assign(partitions)

    monkeypatch.setattr("confluent_kafka.Consumer", WatchedConsumer)
    with KafkaBroker() as broker:
        assert broker.records(broker.create_topic("orders", 2)) == []
    assert settings["fetch.wait.max.ms"] == 10  # librdkafka's default is 500
    assert offsets == [0, 0]  # librdkafka begins to look for them after half a second


def test_records_that_cannot_be_read_are_named_by_topic_and_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class StuckConsumer(Consumer):
        def poll(self, *limits: Any) -> None:
            pass

    monkeypatch.setattr(topic_records, "READ_LIMIT_S", 0.0)
    with KafkaBroker() as broker:
        broker.create_topic("orders", 2)
        monkeypatch.setattr("confluent_kafka.Consumer", StuckConsumer)
        with pytest.raises(ApiError, match=r"Not read within 0 s: orders-0, orders-1") as late:
            broker.records("orders")
        assert late.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_only_what_was_committed_unless_all_is_wanted() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        settings = {"bootstrap.servers": broker.bootstrap_servers, **QUIET}
        producer = Producer({**settings, "transactional.id": "x"})
        producer.init_transactions(30)
        for value, ends in (("kept", producer.commit_transaction), ("not", None)):
            producer.begin_transaction()
            producer.produce("t", value)
            assert producer.flush(30) == 0
            (ends or producer.abort_transaction)(30)
        assert values(broker, "t") == [b"kept"]
        everything = broker.records("t", read_committed=False)
        assert [record.value for record in everything] == [b"kept", b"not"]


@pytest.mark.parametrize("read_committed", [True, False])
def test_a_read_ends_while_somebody_writes(
    read_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BusyTopicsConsumer(Consumer):
        def poll(self, *limits: Any) -> Any:
            for partition in range(3):
                writer.produce("t", "later", partition=partition)
            assert writer.flush(30) == 0
            return super().poll(*limits)

    monkeypatch.setattr(topic_records, "READ_LIMIT_S", 10.0)
    with KafkaBroker() as broker:
        broker.create_topic("t", 3)
        settings = {"bootstrap.servers": broker.bootstrap_servers, **QUIET}
        producer = Producer({**settings, "transactional.id": "x"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", "1", partition=1)
        producer.commit_transaction(30)  # whose marker is behind the last record
        writer = Producer({**settings, "linger.ms": 0})
        writer.produce("t", "2", partition=2)
        assert writer.flush(30) == 0
        monkeypatch.setattr("confluent_kafka.Consumer", BusyTopicsConsumer)
        records = broker.records("t", read_committed)
        assert [record.value for record in records] == [b"1", b"2"]


def test_records_and_address_outlive_a_stop_and_a_kill() -> None:
    with KafkaBroker() as broker, KafkaBroker() as other:
        address = broker.bootstrap_servers
        assert address != other.bootstrap_servers
        broker.create_topic("t")
        for end in (broker.stop, broker.kill):
            write(broker, "t", end.__name__)
            end()
            assert not broker.is_running
            with pytest.raises(ConfigError, match="does not run"):
                broker.kill()
            broker.start()
            assert broker.bootstrap_servers == address
        assert values(broker, "t") == [b"stop", b"kill"]


def test_the_address_stays_with_listeners_of_ones_own() -> None:
    listeners = "OURS://localhost:0,PLAINTEXT://127.0.0.1:0"
    protocols = "OURS:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    properties = {"listeners": listeners, "listener.security.protocol.map": protocols}
    with KafkaBroker(properties) as broker:
        broker.create_topic("t")
        broker.kill()
        broker.start()
        write(broker, "t", "1")  # where it was before
        assert values(broker, "t") == [b"1"]
        found = re.findall(r"Awaiting socket connections on (\S+)\.", broker.output.read_text())
        assert found == found[:2] * 2


@pytest.mark.parametrize("listener", ["localhost:0", ":0"])
def test_clients_use_the_name_of_a_listener_as_in_certificates(listener: str) -> None:
    with KafkaBroker({"listeners": f"PLAINTEXT://{listener}"}) as broker:
        assert broker.bootstrap_servers.startswith("localhost:")
        write(broker, broker.create_topic("t"), "1")
        assert values(broker, "t") == [b"1"]


def test_a_broker_that_ended_by_itself_leaves_nothing_open() -> None:
    broker = KafkaBroker()
    for finish in (broker.start, broker.close):
        broker.start()
        assert broker._launched is not None
        pipe = broker._launched.process.stdin
        assert pipe is not None
        os.kill(broker.pid, signal.SIGKILL)
        wait_until(lambda: not broker.is_running, "the broker has ended")
        finish()
        assert pipe.closed


def test_a_paused_broker_answers_nobody_until_it_goes_on() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        broker.pause()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.5)
        broker.resume()
        write(broker, "t", "on")
        assert values(broker, "t") == [b"on"]
        broker.pause()  # and is ended all the same


def test_other_users_of_the_machine_do_not_see_passwords() -> None:
    password = "kept \\ secret: Ä"
    login = f'{PLAIN_LOGIN} required user_alice="{password}";'
    properties = {"listener.name.plaintext.plain.sasl.jaas.config": login}
    with KafkaBroker(properties) as broker:
        words = Path(f"/proc/{broker.pid}/cmdline").read_bytes().decode()
        assert "secret" not in words
        [file] = broker.output.parent.glob("*.properties")
        assert parse_properties(file.read_text())[next(iter(properties))] == login


def test_a_property_that_is_wrong_is_named_and_nothing_stays() -> None:
    broker = KafkaBroker({"num.partitions": "many"})
    with pytest.raises(ConfigError, match=r"num\.partitions"), broker:
        pass
    assert not broker.is_running
    assert not broker.output.parent.exists()
    with pytest.raises(ConfigError, match="no address"):
        _ = broker.bootstrap_servers


def test_numbers_and_paths_are_properties(tmp_path: Path) -> None:
    with KafkaBroker({"num.partitions": 3, "log.dirs": tmp_path / "logs"}) as broker:
        broker.create_topic("kept", configs={"retention.ms": -1})
        write(broker, "made-by-itself", "1")
        assert len(list(broker.log_dir.glob("made-by-itself-*"))) == 3


def test_a_closed_broker_is_not_started_again() -> None:
    with KafkaBroker() as broker:
        pass
    with pytest.raises(ConfigError, match="The broker was closed"):
        broker.start()


def test_records_outlive_a_restart_in_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with KafkaBroker(log_dir="logs") as broker:
        broker.create_topic("t")
        write(broker, "t", "1")
        broker.stop()
        monkeypatch.chdir("/")
        broker.start()
        assert values(broker, "t") == [b"1"]
    assert broker.log_dir == tmp_path / "logs"


def test_ctrl_c_during_a_start_leaves_no_broker_and_no_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched: list[LaunchedServer] = []

    def interrupt(server: LaunchedServer, limit_s: float | None) -> None:
        launched.append(server)
        raise KeyboardInterrupt

    broker = KafkaBroker()
    with monkeypatch.context() as patched:
        patched.setattr(broker_processes, "wait_until_serving", interrupt)
        with pytest.raises(KeyboardInterrupt):
            broker.start()
        assert launched[0].process.poll() is not None
        with pytest.raises(KeyboardInterrupt), broker:
            pass
        assert launched[1].process.poll() is not None
    assert not broker.output.parent.exists()


def test_a_broker_whose_start_was_interrupted_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(server: LaunchedServer) -> str:
        raise KeyboardInterrupt

    broker = KafkaBroker()
    with monkeypatch.context() as patched:
        patched.setattr(broker_processes, "bound_addresses", interrupt)
        with pytest.raises(KeyboardInterrupt):
            broker.start()
    with broker:
        assert broker.create_topic("t") == "t"


def test_a_directory_that_was_given_stays_and_is_left_clean(tmp_path: Path) -> None:
    with KafkaBroker(log_dir=tmp_path / "logs") as broker:
        broker.create_topic("t")
        write(broker, "t", "1")
    assert not broker.output.exists()
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    with KafkaBroker(log_dir=tmp_path / "logs") as again:
        assert values(again, "t") == [b"1"]


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_a_directory_in_the_properties_is_used_and_not_left_to_a_recovery(
    name: str, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    others = f", {tmp_path / 'second'}" if name == "log.dirs" else ""
    with KafkaBroker({name: f"{own}{others}"}) as broker:
        assert broker.log_dir == own
    assert (own / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("sent", "state"),
    [(signal.SIGKILL, "running"), (signal.SIGTERM, "running"), (signal.SIGKILL, "paused")],
)
def test_the_broker_and_its_directory_end_with_who_started_it(
    sent: signal.Signals, state: str, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, state],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        assert is_broker(pid)
        assert list(tmp_path.iterdir())
        os.kill(holder.pid, sent)
        wait_until(lambda: not is_broker(pid), "the broker has ended")
        wait_until(lambda: not list(tmp_path.iterdir()), "its directory was deleted")


@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_broker_that_is_dropped_ends_and_leaves_no_directory(state: str) -> None:
    broker = KafkaBroker().start()
    broker.kill()
    broker.start()
    if state == "paused":
        broker.pause()
    pid, directory = broker.pid, broker.output.parent
    del broker
    assert not is_broker(pid)
    assert not directory.exists()


def test_a_broker_that_is_dropped_stops_cleanly_in_a_directory_that_stays(tmp_path: Path) -> None:
    KafkaBroker(log_dir=tmp_path / "logs").start()
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


FORKER = """
import os, signal, sys, time
from kafkapy.testing import KafkaBroker

with KafkaBroker() as broker:
    topic = broker.create_topic("t")
    child = os.fork()
    if child == 0:
        assert broker.records(topic) == []
        sys.exit(7)  # a SystemExit, which leaves the block, and then the handlers of the exit
    assert os.waitpid(child, 0)[1] >> 8 == 7
    assert broker.is_running
    print(sorted(path.name for path in broker.log_dir.glob("t-*")), flush=True)
assert not broker.log_dir.parent.exists()
with KafkaBroker() as broker:
    if os.fork():
        print(broker.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()  # this process outlives the one that started the broker
"""


def test_a_forked_process_that_ends_leaves_the_broker_and_its_records(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as forker:  # fmt: skip
        assert forker.stdout is not None
        assert forker.stdout.readline() == "['t-0']\n"
        pid = int(forker.stdout.readline())
        wait_until(lambda: not is_broker(pid), "the broker has ended with its parent")
        wait_until(lambda: not list(tmp_path.iterdir()), "its directory was deleted")


REGISTRY_FORKER = """
import os, signal, sys
from urllib.request import urlopen
from kafkapy.testing import KafkaBroker, SchemaRegistry

def subjects():
    with urlopen(registry.url + "/subjects", timeout=30) as response:
        return response.read()

with KafkaBroker() as broker, SchemaRegistry(broker.bootstrap_servers) as registry:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # if it hangs
        assert subjects() == b"[]"
        if "close" in sys.argv:
            registry.close()
            with registry:  # one of its own
                assert subjects() == b"[]"
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), subjects())
"""


@pytest.mark.parametrize("action", ["exit", "close"])
def test_a_forked_process_that_ends_leaves_the_registry(action: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REGISTRY_FORKER, action], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "7 b'[]'\n", done.stderr


def test_topics_of_a_broker_with_a_login_are_created_and_read() -> None:
    # A property of another client in the file that is shared is ignored, as in Java.
    with KafkaBroker(SECURED, client_properties=LOGIN | {"basic.auth.user.info": "a:b"}) as broker:
        topic = broker.create_topic("t")
        producer = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        user = {"sasl.username": "alice", "sasl.password": "secret"}
        write(broker, topic, "1", **{**producer, **user})
        assert values(broker, topic) == [b"1"]


def test_a_login_that_is_missing_is_an_error_at_once() -> None:
    with KafkaBroker(SECURED, client_properties={"sasl.mechanism": "PLAIN"}) as broker:
        for call in (broker.create_topic, broker.records):
            with pytest.raises(ConfigError, match=r"sasl\.jaas\.config"):
                call("t")


def test_a_login_without_rights_on_groups_reads_a_topic() -> None:
    properties = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with KafkaBroker(properties) as broker:
        broker.create_topic("t")
        write(broker, "t", "1")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        denied = AclBinding(
            ResourceType.GROUP, "*", ResourcePatternType.LITERAL,
            "User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.DENY,
        )  # fmt: skip
        admin.create_acls([denied])[denied].result(30)
        for _ in range(5):  # the refusal may come before or after the records
            assert values(broker, "t") == [b"1"]


def test_a_topic_that_a_login_may_not_read_is_not_said_to_be_missing() -> None:
    with KafkaBroker(
        {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    ) as broker:
        with pytest.raises(ApiError, match=r"^Topic t: Topic authorization failed\.$") as found:
            broker.records("t")
        assert found.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_the_fixtures_log_in_at_a_broker_that_requires_it(tmp_path: Path) -> None:
    (tmp_path / "test_secured.py").write_text(SECURED_TESTS)
    expect_passed(1, tmp_path)


def test_pytest_finds_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    (tmp_path / "conftest.py").write_text(USERS_CONFTEST)
    expect_passed(4, tmp_path)


def expect_passed(count: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


def test_a_schema_registry_keeps_its_schemas_in_the_broker() -> None:
    with KafkaBroker() as broker:
        registry = SchemaRegistry(broker.bootstrap_servers)
        with registry, SchemaRegistryClient({"url": registry.url}) as client:
            schema_id = client.register_schema("orders-value", Schema('"string"', "AVRO"))
        with pytest.raises(ConfigError, match="The schema registry does not run"):
            _ = registry.url
        assert "schema-registry" not in {thread.name for thread in threading.enumerate()}
        with registry, SchemaRegistryClient({"url": registry.url}) as client:
            assert client.get_latest_version("orders-value").schema_id == schema_id
        assert len(broker.records("_schemas")) == 1


def test_a_schema_registry_logs_in(tmp_path: Path) -> None:
    with KafkaBroker(SECURED, client_properties=LOGIN) as broker:
        with (
            SchemaRegistry(broker.bootstrap_servers, broker.client_properties) as registry,
            SchemaRegistryClient({"url": registry.url}) as client,
        ):
            assert client.get_subjects() == []
        with pytest.raises(ApiError):
            SchemaRegistry(broker.bootstrap_servers, {"default.api.timeout.ms": 3000}).start()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--until-eof"], "--until-eof needs a pipe or a terminal as standard input"),
        (["--until-eof", "--daemon"], "--until-eof is for one broker in the foreground"),
    ],
)
def test_until_eof_wants_somebody_at_the_other_end(
    tmp_path: Path, flags: list[str], why: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafkapy", "server", "start", *flags,
         "--override", f"log.dirs={tmp_path}", "--override", "listeners=PLAINTEXT://127.0.0.1:0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert why in done.stderr
    assert "Traceback" not in done.stderr
