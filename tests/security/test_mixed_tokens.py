"""Delegation tokens of a cluster of Apache Kafka 3.9 and kafkapy: the same answers, the same tokens
wherever they were made, the same text of both tools, and Java's clients.

What a user would lose: a token that lets in at one broker and not at the next.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.security.sasl.scram import to_base64
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer, zookeeper_for
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.token_brokers import (
    MECHANISMS,
    apache,
    create,
    description,
    expiry,
    login,
    logs_in,
    ours,
    raw_login,
    renewal,
    request_as,
    servers,
    token_login,
)
from tests.harness.security.token_requests import TokenExchange

TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
TOPIC = "by-token"
# That tokens are over is seen before they are removed: only the controller does it.
INTERVAL = {"delegation.token.expiry.check.interval.ms": "3000"}
ENTRIES = (
    "--allow-principal User:alice --operation CreateTokens --user-principal User:carol",
    "--allow-principal User:dave --operation DescribeTokens --user-principal User:alice",
    f"--allow-principal User:alice --operation All --topic {TOPIC}",
    "--allow-principal User:alice --operation All --group *",
)


class Mixed(NamedTuple):
    """Apache Kafka's broker is the controller, as it starts first."""

    zookeeper: ZooKeeperServer
    apache: apache_kafka.ApacheBroker
    ours: BrokerProcess

    def at(self, kind: str) -> ServerProcess:
        return self.ours if kind == "kafkapy" else self.apache


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    directory = tmp_path_factory.mktemp("mixed")
    zookeeper = zookeeper_for(directory).start()
    theirs = apache(directory / "apache", zookeeper, **{"broker.id": "1", **INTERVAL})
    mine = ours(directory / "ours", zookeeper.connect(), **{"broker.id": "2", **INTERVAL})
    try:
        with theirs, mine:
            for words in ENTRIES:
                add = ("--add", *words.split())
                done = kafkapy("acls", "--bootstrap-server", theirs.bootstrap_servers, *add)
                assert done.status == 0, done.stderr
            wait_until(lambda: sees_alices(mine, theirs), "both brokers have the entries")
            create_topic(mine.bootstrap_servers, TOPIC, 2)
            yield Mixed(zookeeper, theirs, mine)
        assert "Traceback" not in mine.output_text()
    finally:
        zookeeper.release()


def sees_alices(*brokers: Any) -> bool:
    """Whether dave is told of alice's tokens by each, as the last entry but two says."""
    tokens = [create(broker, "alice") for broker in brokers]
    seen = [len(request_as(broker, "dave", description()).tokens) for broker in brokers]
    for broker, token in zip(brokers, tokens, strict=True):
        assert request_as(broker, "alice", expiry(token.hmac)).error_code == 0
    return all(seen)


def none_left(mixed: Mixed) -> bool:
    """Whether no broker knows a token any more."""
    brokers = (mixed.apache, mixed.ours)
    return not any(request_as(broker, "admin", description()).tokens for broker in brokers)


def are_known(mixed: Mixed, owner: str) -> bool:
    """Whether both brokers know a token of the owner."""
    brokers = (mixed.apache, mixed.ours)
    return all(request_as(broker, owner, description(owner)).tokens for broker in brokers)


def test_both_answer_the_same(mixed: Mixed) -> None:
    answers = {}
    for kind in ("apache", "kafkapy"):
        wait_until(lambda: none_left(mixed), "nobody's tokens are left")
        answers[kind] = TokenExchange(mixed.at(kind)).run()
    assert len(answers["apache"]) > 100
    differing = [
        (theirs, mine)
        for theirs, mine in zip(answers["apache"], answers["kafkapy"], strict=True)
        if theirs != mine
    ]
    assert differing == []


async def node_of(connect: str, token_id: str) -> bytes:
    """The JSON of a token."""
    zk = KazooZooKeeper(ZooKeeperClientConfig.from_properties({"zookeeper.connect": connect}))
    await zk.connect()
    try:
        return (await zk.get(f"/delegation_token/tokens/{token_id}")).data
    finally:
        await zk.close()


def test_znodes_are_the_same_bytes(mixed: Mixed) -> None:
    masked = []
    for kind in ("apache", "kafkapy"):
        token = create(mixed.at(kind), "alice", "bob", "Ärger, a=b*~")
        node = asyncio.run(node_of(mixed.zookeeper.connect(), token.token_id))
        assert orjson.loads(node)["expiryTimestamp"] == token.expiry_timestamp_ms
        request_as(mixed.at(kind), "alice", expiry(token.hmac))
        masked.append(re.sub(rb"\d{13}", b"<time>", node).replace(token.token_id.encode(), b"<id>"))
    assert masked[0] == masked[1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("maker", ["apache", "kafkapy"])
def test_a_token_counts_at_both(mixed: Mixed, maker: str, mechanism: str) -> None:
    here, there = mixed.at(maker), mixed.at("kafkapy" if maker == "apache" else "apache")
    token = create(here, "alice", "bob")
    assert logs_in(here, token, mechanism)
    wait_until(lambda: logs_in(there, token, mechanism), "the other knows the token")
    hours = 3_600_000
    renewed = request_as(there, "bob", renewal(token.hmac, 50 * hours))
    assert renewed.error_code == 0

    def has_heard() -> bool:
        rows = request_as(here, "alice", description("alice")).tokens
        [row] = [row for row in rows if row.token_id == token.token_id]
        return bool(row.expiry_timestamp == renewed.expiry_timestamp_ms)

    wait_until(has_heard, "the first knows of the renewal")
    assert request_as(there, "alice", expiry(token.hmac)).error_code == 0
    assert not logs_in(there, token, mechanism)
    wait_until(lambda: not logs_in(here, token, mechanism), "the first knows of the end")
    unknown = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert request_as(here, "bob", renewal(token.hmac)).error_code == unknown


def test_the_controller_removes_what_is_over(mixed: Mixed) -> None:
    """Of whoever made it; ours hears of it."""
    tokens = [create(mixed.at(kind), "alice", max_lifetime_ms=1) for kind in ("apache", "kafkapy")]
    ids = {token.token_id for token in tokens}

    def are_gone() -> bool:
        rows = request_as(mixed.ours, "alice", description("alice")).tokens
        return not ids & {row.token_id for row in rows}

    wait_until(are_gone, "they are removed")


def session_ms(broker: Any, token: Any, mechanism: str) -> int:
    """For how long a broker says that a login by a token counts."""
    with RawConnection(servers(broker)) as raw:
        return raw_login(raw, token, mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_session_is_as_long_as_its_token(mixed: Mixed, mechanism: str) -> None:
    minute_ms = 60_000
    for kind in ("apache", "kafkapy"):
        token = create(mixed.at(kind), "alice", max_lifetime_ms=10 * minute_ms)
        assert 8 * minute_ms < session_ms(mixed.at(kind), token, mechanism) <= 10 * minute_ms
        request_as(mixed.at(kind), "alice", renewal(token.hmac, 5 * minute_ms))
        assert 3 * minute_ms < session_ms(mixed.at(kind), token, mechanism) <= 5 * minute_ms
        request_as(mixed.at(kind), "alice", expiry(token.hmac))


def config_of(path: Path, properties: Mapping[str, str]) -> str:
    return str(apache_kafka.write_properties(path, properties))


def test_javas_consoles_log_in_by_a_token_of_ours(mixed: Mixed, tmp_path: Path) -> None:
    token = create(mixed.ours, "alice")
    wait_until(lambda: logs_in(mixed.apache, token), "the other knows the token")
    config = config_of(tmp_path / "token", token_login(token.token_id, token.hmac, MECHANISMS[1]))
    words = ("--bootstrap-server", servers(mixed.ours), "--topic", TOPIC)
    send_lines_through_java(config, *words)
    request_as(mixed.ours, "alice", expiry(token.hmac))


class Printed(NamedTuple):
    """Output of a tool, without the text that differs from token to token."""

    stdout: str
    status: int
    error: str


def printed(stdout: str, status: int, stderr: str) -> Printed:
    text = re.sub(r"(?m)^[\w-]{22} \S{88}", "<id> <hmac>", stdout)
    text = re.sub(r"(?<=tokenId : )[\w-]{22}", "<id>", text)
    text = re.sub(r"(?<=hmac :)\S+", "<hmac>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "<date>", text)
    return Printed(text.rstrip("\n"), status, stderr.partition("\n")[0])


def tool(kind: str, *words: str) -> Printed:
    """Run Kafka's tool, or ours."""
    if kind == "kafkapy":
        done = kafkapy("delegation-tokens", *words)
        return printed(done.stdout, done.status, done.stderr)
    run_ = apache_kafka.run_tool(TOOL, *words)
    return printed(run_.stdout.decode(), run_.returncode, run_.stderr.decode())


@pytest.mark.parametrize("kind", ["apache", "kafkapy"])
def test_both_tools_say_the_same_of_a_broker(mixed: Mixed, kind: str, tmp_path: Path) -> None:
    wait_until(lambda: none_left(mixed), "nobody's tokens are left")
    broker = mixed.at(kind)
    config = config_of(tmp_path / "carol", login("carol"))
    connection = ("--bootstrap-server", servers(broker), "--command-config", config)
    said: dict[str, list[Printed]] = {}
    for program in ("apache", "kafkapy"):
        lines = said[program] = []
        create_words = ("--create", "--max-life-time-period", "-1")
        renewers = ("--renewer-principal", "User:bob", "--renewer-principal", "User:dave")
        lines.append(tool(program, *connection, *create_words, *renewers))
        # The tool may have asked either broker.
        wait_until(lambda: are_known(mixed, "carol"), "both brokers know the token")
        [row] = request_as(broker, "carol", description("carol")).tokens
        hmac = ("--hmac", to_base64(bytes(row.hmac)))
        for words in (
            ("--describe", "--owner-principal", "User:carol"),
            ("--describe", "--owner-principal", "User:nobody"),
            ("--renew", "--renew-time-period", "7200000", *hmac),
            ("--expire", "--expiry-time-period", "3600000", *hmac),
            ("--expire", "--expiry-time-period", "-1", *hmac),
            ("--renew", "--renew-time-period", "-1", *hmac),
            (*create_words, "--owner-principal", "User:alice"),
        ):
            lines.append(tool(program, *connection, *words))
    assert said["kafkapy"] == said["apache"]
    assert [line.status for line in said["kafkapy"]] == [0, 0, 0, 0, 0, 0, 1, 1]
