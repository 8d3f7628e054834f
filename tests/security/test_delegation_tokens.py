"""Delegation tokens on a broker with an embedded store: every version of the four APIs, who may
ask what, and logins that begin and end with their token.

What a user would lose: a token that does not let in, or lets in who should not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from tests.harness.processes.broker_process import (
    BrokerProcess,
    answers_api_versions,
    free_port,
)
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.protocol.served_versions import each_version
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.secure_broker import SecureBroker, Way
from tests.harness.security.token_brokers import (
    MECHANISMS,
    REFUSED,
    by_token,
    create,
    creation,
    description,
    expiry,
    login,
    logs_in,
    ours,
    raw_login,
    renewal,
    request_as,
    servers,
    settings,
)

DAY_MS = 86_400_000
SECRET = {"delegation.token.secret.key": "secret"}
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    interval = {"delegation.token.expiry.check.interval.ms": "200"}
    with ours(tmp_path_factory.mktemp("tokens") / "logs", **interval) as process:
        yield process
    assert "Traceback" not in process.output_text()


@each_version(ApiKey.CREATE_DELEGATION_TOKEN)
def test_create(broker: BrokerProcess, version: int) -> None:
    token = request_as(broker, "alice", creation("bob", max_lifetime_ms=2 * DAY_MS), version)
    assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
    assert token.token_requester_principal_name == ("alice" if version >= 3 else "")
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 2 * DAY_MS
    assert logs_in(broker, token)


def test_no_user_cuts_the_broker_off_from_zookeeper_by_a_token_with_many_renewers(
    broker: BrokerProcess,
) -> None:
    """ZooKeeper takes no znode of more than 1 MiB."""
    names = [f"renewer-{number}" for number in range(10_000)]
    refused = request_as(broker, "alice", creation(*names), 3)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert request_as(broker, "alice", creation(*names[:1_000]), 3).error_code == 0


def test_users_of_a_listener_that_was_added_at_run_time_get_tokens(tmp_path: Path) -> None:
    users = settings()["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
    added = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "ADDED:SASL_PLAINTEXT",
        "listener.name.added.plain.sasl.jaas.config": users,
        "listener.name.added.sasl.enabled.mechanisms": "PLAIN",
    }
    with ours(tmp_path / "logs", **added) as broker:
        port = free_port()
        listeners = f"{broker.properties['listeners']},ADDED://127.0.0.1:{port}"
        words = ("--entity-type", "brokers", "--entity-name", "0", "--alter")
        change = ("--add-config", f"listeners=[{listeners}]")
        altered = kafkapy(
            "configs", "--bootstrap-server", broker.bootstrap_servers, *words, *change
        )
        assert altered.status == 0, altered.stderr
        wait_until(lambda: answers_api_versions("127.0.0.1", port), "the listener is there")
        with Cluster(f"127.0.0.1:{port}", login("alice")) as cluster:
            assert cluster.request(creation()).error_code == 0
            [token] = cluster.request(description("alice")).tokens
            assert cluster.request(expiry(token.hmac)).error_code == 0
        assert "Traceback" not in broker.output_text()


@each_version(ApiKey.DESCRIBE_DELEGATION_TOKEN)
def test_describe(broker: BrokerProcess, version: int) -> None:
    token = create(broker, "admin", "bob", owner="dave")
    answer = request_as(broker, "dave", description("dave"), version)
    [row] = [row for row in answer.tokens if row.token_id == token.token_id]
    assert bytes(row.hmac) == bytes(token.hmac)
    assert (row.principal_name, row.renewers[0].principal_name) == ("dave", "bob")
    assert row.token_requester_principal_name == ("admin" if version >= 3 else "")
    assert (row.issue_timestamp, row.expiry_timestamp, row.max_timestamp) == (
        token.issue_timestamp_ms,
        token.expiry_timestamp_ms,
        token.max_timestamp_ms,
    )


@each_version(ApiKey.RENEW_DELEGATION_TOKEN)
def test_renew(broker: BrokerProcess, version: int) -> None:
    token = create(broker, "alice", "bob")
    answer = request_as(broker, "bob", renewal(token.hmac, 100 * DAY_MS), version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, token.max_timestamp_ms)


@each_version(ApiKey.EXPIRE_DELEGATION_TOKEN)
def test_expire(broker: BrokerProcess, version: int) -> None:
    token = create(broker, "alice", "bob")
    answer = request_as(broker, "bob", expiry(token.hmac), version)
    assert answer.error_code == 0
    assert answer.expiry_timestamp_ms < token.expiry_timestamp_ms
    assert not logs_in(broker, token)


def refusals(cluster: Cluster) -> set[int]:
    requests = (creation("bob"), description(), renewal(b"h"), expiry(b"h"))
    return {cluster.request(request).error_code for request in requests}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_has_a_token_is_its_owner_but_for_tokens(
    broker: BrokerProcess, mechanism: str, tmp_path: Path
) -> None:
    config = tmp_path / "admin.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in login("admin").items()))
    connection = ("--bootstrap-server", servers(broker), "--command-config", str(config))
    entry = ("--add", "--allow-principal", "User:alice", "--operation", "Describe", "--group", "g")
    assert kafkapy("acls", *connection, *entry).status == 0
    wanted = DescribeGroupsRequest(groups=["g"])
    with by_token(broker, create(broker, "alice"), mechanism) as cluster:
        assert cluster.coordinator_request("g", wanted).groups[0].error_code == 0
        assert refusals(cluster) == {NOT_ALLOWED}
    with by_token(broker, create(broker, "bob"), mechanism) as cluster:
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert cluster.request(wanted).groups[0].error_code == refused


def test_without_a_login_nothing_is_told(broker: BrokerProcess) -> None:
    with Cluster(broker.bootstrap_servers) as cluster:
        assert refusals(cluster) == {NOT_ALLOWED}


def test_of_tls_alone_only_a_certificate_counts(tmp_path: Path) -> None:
    with SecureBroker(tmp_path, SECRET) as process:
        for way, errors in (
            (Way("TLS"), {NOT_ALLOWED}),
            (Way("MUTUAL"), {0, ErrorCode.DELEGATION_TOKEN_NOT_FOUND}),
            (Way("BOTH", "SCRAM-SHA-512"), {0, ErrorCode.DELEGATION_TOKEN_NOT_FOUND}),
        ):
            with Cluster(process.servers(way), process.java(way)) as cluster:
                assert refusals(cluster) == errors, way


def test_without_a_secret_there_are_no_tokens(tmp_path: Path) -> None:
    with SecureBroker(tmp_path) as process:
        way = Way("SASL", "PLAIN")
        with Cluster(process.servers(way), process.java(way)) as cluster:
            assert refusals(cluster) == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}


def test_tokens_and_their_changes_outlive_a_restart(tmp_path: Path) -> None:
    with ours(tmp_path / "logs") as process:
        kept, ended = create(process, "alice", "bob"), create(process, "alice")
        renewed = request_as(process, "bob", renewal(kept.hmac, 5 * DAY_MS))
        request_as(process, "alice", expiry(ended.hmac))
        process.restart()
        [row] = request_as(process, "alice", description()).tokens
        assert row.token_id == kept.token_id
        assert row.expiry_timestamp == renewed.expiry_timestamp_ms
        assert logs_in(process, kept)
        assert not logs_in(process, ended)


def test_a_session_ends_with_its_token(tmp_path: Path) -> None:
    """Nobody removes the token meanwhile: it is its time that counts."""
    with ours(tmp_path / "logs") as process:
        token = create(process, "alice", max_lifetime_ms=1500)
        with RawConnection(servers(process)) as raw:
            assert 0 < raw_login(raw, token) <= 1500
            asking = encode_request(ListGroupsRequest(), 0, 1, "raw")

            def is_over() -> bool:
                raw.send(asking)
                return raw.read_frame() is None

            wait_until(is_over, "the session is over")
        assert not logs_in(process, token)
        assert f"tokenId : {token.token_id} has expired" in process.output_text()
        assert request_as(process, "alice", renewal(token.hmac)).error_code == (
            ErrorCode.DELEGATION_TOKEN_EXPIRED
        )
        assert [row.token_id for row in request_as(process, "alice", description()).tokens] == [
            token.token_id
        ]


def test_expired_tokens_are_removed(broker: BrokerProcess) -> None:
    brief = create(broker, "alice", max_lifetime_ms=100)
    kept = create(broker, "alice")

    def ids() -> set[str]:
        return {row.token_id for row in request_as(broker, "alice", description()).tokens}

    wait_until(lambda: brief.token_id not in ids(), "the token is removed")
    assert kept.token_id in ids()
    with pytest.raises(ApiError, match=REFUSED), by_token(broker, brief) as cluster:
        cluster.request(ListGroupsRequest())
    said = f"Delegation token expired for token: {brief.token_id} for owner: User:alice"
    assert said in broker.output_text()


def test_brokers_follow_each_other(tmp_path: Path) -> None:
    """Over ZooKeeper: what one makes and ends, the other has; the controller tidies up for both."""
    interval = {"delegation.token.expiry.check.interval.ms": "200"}
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        first, second = (
            ours(tmp_path / name, zookeeper.connect(), **{"broker.id": name, **interval})
            for name in "12"
        )
        with first, second:
            token = create(first, "alice", "bob")
            create(second, "alice", max_lifetime_ms=1)
            wait_until(lambda: logs_in(second, token), "the second knows the token")
            second.stop()
            missed = create(first, "alice")
            assert request_as(first, "bob", expiry(token.hmac)).error_code == 0
            second.start()
            assert logs_in(second, missed)
            assert not logs_in(second, token)
            assert request_as(second, "alice", expiry(missed.hmac)).error_code == 0

            def none_left() -> bool:
                brokers = (first, second)
                return not any(request_as(each, "admin", description()).tokens for each in brokers)

            wait_until(none_left, "no token is left, the one whose time is over neither")
            assert "Traceback" not in first.output_text() + second.output_text()
