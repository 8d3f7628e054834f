"""The likeliest mistakes at the prompt: one line says what is wrong, one what to do; the tool ends
by itself, with status 1 and without a traceback.

The rows are those of docs/operations/mistakes.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from dev.docs.mistakes_page import mistakes
from tests.harness.plugins import unchecked
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.small_disks import can_mount, mounted
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import make_identity
from tests.harness.security.secure_broker import SecureBroker, Way

HERE = [row for row in mistakes() if row.get("where") != "spark"]
TLS, PLAIN, SCRAM = Way("TLS"), Way("SASL", "PLAIN"), Way("BOTH", "SCRAM-SHA-512")
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "inter.broker.listener.name": "PLAINTEXT",
}
BAD_JSON = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[0]}]'
ABSENT = {"version": 1, "partitions": [{"topic": "orders", "partition": 77, "replicas": [0]}]}


class NoBroker:
    """Something that listens and is no broker: it gives the same answer to everybody."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def _serve(self) -> None:
        with ExitStack() as connections, suppress(OSError):
            while True:
                connection = connections.enter_context(self._server.accept()[0])
                connection.recv(1)
                connection.sendall(self._answer)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._server.close()


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def write_files(directory: Path, secure: SecureBroker) -> None:
    """Write the files that the command lines of the table name."""
    other = {"ssl.truststore.location": str(make_identity(directory, "other").with_suffix(".crt"))}
    quick = {"request.timeout.ms": "1000", "default.api.timeout.ms": "1000"}
    for name, properties in {
        "quick": quick,
        "tls": secure.java(TLS),
        "wrong-ca": secure.java(TLS) | other,
        "login": secure.java(SCRAM),
        "wrong-plain": secure.java(PLAIN, "wrong"),
        "wrong-scram": secure.java(SCRAM, "wrong"),
        "bad": {"log.dirs": "other", "num.partitions": "ten"},
    }.items():
        write_properties(directory / f"{name}.properties", properties)
    (directory / "bad.json").write_text(BAD_JSON)
    (directory / "absent.json").write_text(json.dumps(ABSENT))
    (directory / "a-file").touch()


def join(servers: str) -> Consumer:
    """A member of the group `active`."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "active", **QUIET})
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "it has joined")
    return consumer


class World:
    """Test environment of the table: brokers, files, and listeners that are no brokers."""

    def __init__(self, directory: Path, broker: BrokerProcess, secure: SecureBroker) -> None:
        self.directory = directory
        self._web, self._silent = NoBroker(b"HTTP/1.1 400 Bad Request\r\n\r\n"), NoBroker(b"")
        self.names = {
            "{plain}": broker.bootstrap_servers,
            "{dead}": f"127.0.0.1:{free_port()}",
            "{http}": self._web.address,
            "{silent}": self._silent.address,
            "{tls}": secure.servers(TLS),
            "{sasl}": secure.servers(PLAIN),
            "{both}": secure.servers(SCRAM),
            "{log_dir}": str(broker.log_dir),
        }

    def close(self) -> None:
        self._web.close()
        self._silent.close()

    def filled(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, broker: BrokerProcess) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("mistakes")
    with SecureBroker(directory / "secure", AUTHORIZER) as secure:
        write_files(directory, secure)
        create_topic(broker.bootstrap_servers, "orders")
        member = join(broker.bootstrap_servers)
        found = World(directory, broker, secure)
        yield found
        found.close()
        member.close()


def run(words: list[str], **environ: str) -> tuple[int, str]:
    """Run `kafkapy` in a process of its own where it would become another program, else here."""
    if words[0] not in ("server", "spark-submit", "zookeeper", "cluster"):
        done = kafkapy(*words)
        return done.status, done.stdout + done.stderr
    program = [str(Path(sys.executable).parent / "kafkapy"), *words]
    env = {**os.environ, **environ}
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, env=env)
    return ended.returncode, ended.stdout + ended.stderr


def check(row: Mapping[str, Any], world: World, **environ: str) -> None:
    status, said = run(shlex.split(world.filled(row["command"])), **environ)
    assert status == 1, said
    assert "Traceback" not in said
    for line in row["says"]:
        pattern = re.escape(world.filled(line)).replace(re.escape("..."), ".*")
        assert re.search(rf"^{pattern}$", said, re.MULTILINE), f"{line}\n---\n{said}"


@pytest.mark.parametrize("row", HERE, ids=[row["name"] for row in HERE])
def test_a_mistake_is_told_in_a_line_or_two(
    row: Mapping[str, Any], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.directory)
    where = row.get("where", "")
    if where == "no java":
        check(row, world, PATH="/nowhere", JAVA_HOME="")
    elif where != "small disk":
        check(row, world)
    elif can_mount():
        with mounted(world.directory / "full", "64k") as full:
            (full / "logs").mkdir()
            with suppress(OSError), (full / "filler").open("wb", buffering=0) as filler:
                while filler.write(bytes(4096)):
                    pass
            check(row, world)
    else:
        unchecked.note("a full disk", "only root may mount a small one")
