"""SASL/OAUTHBEARER on real brokers: which tokens are taken, who logs in with what, and that Apache
Kafka 3.9 answers the same. What a user would lose: the login of a company's identity provider, or
the certainty that nobody gets in without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from confluent_kafka import KafkaError, Producer

from kafkapy.client.cluster import Cluster
from kafkapy.client.librdkafka import producer_config
from kafkapy.common.errors import ApiError
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.oauth.tokens import encode_unsecured, section_of
from tests.harness.plugins import leaks
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.oauth_broker import (
    LISTENERS,
    Answer,
    ApacheOAuthBroker,
    OAuthBroker,
    fetching_client,
    logs_in,
    message_of,
    unsecured_client,
)
from tests.harness.security.token_issuer import Issuer, claims, hmac_by_public_key, rsa_key

REFUSED = '{"status":"invalid_token"}'
AS_IN_KAFKA = [OAuthBroker, ApacheOAuthBroker] if apache_kafka.installed() else [OAuthBroker]
AnyBroker = OAuthBroker | ApacheOAuthBroker


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as served:
        yield served


@pytest.fixture(scope="module")
def brokers(
    issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[type, AnyBroker]]:
    """Ours and, where its jars are there, Apache Kafka's."""
    home = tmp_path_factory.mktemp("oauth")
    made: dict[type, AnyBroker] = {}
    try:
        for kind in AS_IN_KAFKA:
            made[kind] = kind(home / kind.__name__, issuer)
            made[kind].start()
        yield made
    finally:
        for broker in made.values():
            broker.kill()
    assert "Traceback" not in made[OAuthBroker].output_text()
    assert "eyJ" not in made[OAuthBroker].output_text()  # no token is in the log


@pytest.fixture
def broker(brokers: dict[type, AnyBroker]) -> OAuthBroker:
    found = brokers[OAuthBroker]
    assert isinstance(found, OAuthBroker)
    return found


@pytest.fixture(params=AS_IN_KAFKA, ids=lambda kind: kind.__name__)
def either(request: pytest.FixtureRequest, brokers: dict[type, AnyBroker]) -> AnyBroker:
    return brokers[request.param]


def unsecured_messages() -> dict[str, bytes]:
    """First messages for the listener UNSECURED, which asks for scope `use`."""
    now_s = time.time()
    head = section_of({"alg": "none"})

    def made(**more: Any) -> bytes:
        whole = {"sub": "alice", "iat": now_s, "exp": now_s + 3600, "scope": "use", **more}
        return message_of(encode_unsecured({k: v for k, v in whole.items() if v is not None}))

    def of(value: str) -> bytes:
        return message_of(value)

    good, body = made(), section_of({"sub": "a", "exp": now_s + 3600})
    return {
        "good": good,
        "a list": made(scope=["a", "use"]),
        "no iat": made(iat=None),
        "two words": made(scope="use more"),
        "no scope": made(scope=None),
        "scope number": made(scope=5),
        "expired": made(exp=now_s - 1),
        "later": made(iat=now_s + 1000),
        "over before": made(iat=now_s - 10, exp=now_s - 20),
        "no exp": made(exp=None),
        "exp text": made(exp="soon"),
        "no sub": made(sub=None),
        "blank sub": made(sub=" "),
        "sub number": made(sub=5),
        "alg": of(f"{section_of({'alg': 'HS256'})}.{body}."),
        "signature": of(f"{head}.{body}.abc"),
        "two parts": of(f"{head}.{body}"),
        "four parts": of(f"{head}.{body}.a.b"),
        "two dots": of(f"{head}.."),
        "garbage": of("garbage"),
        "no JSON": of("YWJj.YWJj."),
        "no base64": of("a~b.a~b."),
        "nothing": b"",
        "plain": b"\0alice\0secret",
        "no auth": b"n,,\x01x=abc\x01\x01",
        "binding": b"p" + good[1:],
        "lower case": good.replace(b"Bearer", b"bearer  "),
        "extensions": good.replace(b"\x01\x01", b"\x01traceId=1 2\x01x=y\x01\x01"),
        "extension name": good.replace(b"\x01\x01", b"\x01trace_id=1\x01\x01"),
        "extension value": good.replace(b"\x01\x01", b"\x01x=\x01\x01"),
        "as oneself": good.replace(b"n,,", b"n,a=alice,"),
        "as another": good.replace(b"n,,", b"n,a=bob,"),
        "only %x01": b"\x01",
    }


def signed_messages(issuer: Issuer) -> dict[str, bytes]:
    """First messages for the listener SIGNED."""
    now_s = int(time.time())
    key_id, key = issuer.keys[-1]
    head = {"kid": key_id}

    def made(lifetime_s: int = 3600, **more: Any) -> bytes:
        return message_of(issuer.sign(claims(lifetime_s=lifetime_s, **more)))

    def by(key: Any, algorithm: str, headers: dict[str, Any] | None = head) -> bytes:
        return message_of(jwt.encode(claims(), key, algorithm, headers=headers))

    return {
        "good": made(),
        "audiences": made(aud=["x", "kafka"]),
        "other audience": made(aud="x"),
        "no audience": made(aud=None),
        "audience number": made(aud=5),
        "other issuer": made(iss="x"),
        "no issuer": made(iss=None),
        "expired": made(-100, iat=now_s - 200),
        "expired, by little": made(-10, iat=now_s - 200),
        "not yet": made(nbf=now_s + 100),
        "not yet, by little": made(nbf=now_s + 10),
        "issued later": made(iat=now_s + 100),
        "over before": made(iat=now_s + 7200),
        "no iat": made(iat=None),
        "no exp": made(exp=None),
        "no sub": made(sub=None),
        "blank sub": made(sub=" "),
        "scopes": made(scope=["a", "b"]),
        "scope twice": made(scope=["a", "a"]),
        "blank scope": made(scope=""),
        "scope number": made(scope=5),
        "none": message_of(encode_unsecured(claims())),
        "none, signed": message_of(f"{encode_unsecured(claims())}abc"),
        "no key ID": by(key, "RS256", None),
        "unknown key ID": by(key, "RS256", {"kid": "unknown"}),
        "other key": by(rsa_key(), "RS256"),
        "RS512": by(key, "RS512"),
        "PS256": by(key, "PS256"),
        "public key as secret": message_of(hmac_by_public_key(issuer)),
        "crit": by(key, "RS256", {**head, "crit": ["x"], "x": 1}),
        "garbage": message_of("garbage"),
        "cut": made()[:-10] + b"\x01\x01",
        "changed": made()[:-8] + b"AAAA\x01\x01",
        "as another": made().replace(b"n,,", b"n,a=bob,"),
        "sub trimmed": made(sub=" al ").replace(b"n,,", b"n,a=al,"),
    }


def test_same_answers_to_the_same_tokens(brokers: dict[type, AnyBroker], issuer: Issuer) -> None:
    messages = {"UNSECURED": unsecured_messages(), "SIGNED": signed_messages(issuer)}
    taken: dict[str, set[str]] = {}
    for listener in LISTENERS:
        for name, message in messages[listener].items():
            answers = {kind: logs_in(b.servers(listener), message) for kind, b in brokers.items()}
            ours = answers[OAuthBroker]
            assert ours[-1] is not None
            if ours[-1].error_code == 0:
                taken.setdefault(listener, set()).add(name)
            for theirs in answers.values():
                assert (name, ours) == (name, theirs)
    good = {"good", "a list", "no iat", "lower case", "extensions", "as oneself"}
    assert taken["UNSECURED"] == good
    assert taken["SIGNED"] == {
        *("good", "audiences", "expired, by little", "not yet, by little", "issued later"),
        *("scopes", "scope number", "no key ID", "RS512", "PS256", "sub trimmed"),
    }


def test_where_apaches_broker_has_no_answer_ours_refuses(broker: OAuthBroker) -> None:
    """An exception ends the connection there (3.9.1)."""
    body = section_of({"sub": "alice", "exp": time.time() + 3600})
    for value in (f"{section_of({'typ': 'JWT'})}.{body}.", "W10.W10."):
        last = logs_in(broker.servers("UNSECURED"), message_of(value))[-1]
        assert last == Answer(58, REFUSED, b"", False)
    [last] = logs_in(broker.servers("UNSECURED"), b"n,,\x01auth=Basic abc\x01\x01")
    assert last is not None
    assert "invalid credentials with SASL mechanism OAUTHBEARER" in str(last.error_message)


def test_another_token_after_the_challenge(either: AnyBroker, issuer: Issuer) -> None:
    good = message_of(issuer.sign())
    answers = logs_in(either.servers("SIGNED"), message_of("garbage"), good)
    assert [(a.error_code, a.has_session) for a in answers if a] == [(0, False), (0, True)]


def ways(issuer: Issuer, tmp_path: Path) -> list[tuple[str, dict[str, str]]]:
    """(listener, client properties) of each way to come by a token."""
    file = tmp_path / "token"
    file.write_text(f"{issuer.sign()}\n")
    return [
        ("UNSECURED", unsecured_client()),
        ("SIGNED", fetching_client(issuer.token_url)),
        ("SIGNED", fetching_client(file.as_uri())),
    ]


@pytest.mark.parametrize("way", [0, 1, 2], ids=["made", "fetched", "file"])
def test_our_tools(either: AnyBroker, issuer: Issuer, tmp_path: Path, way: int) -> None:
    listener, properties = ways(issuer, tmp_path)[way]
    config = str(apache_kafka.write_properties(tmp_path / "client.properties", properties))
    servers, topic = ("--bootstrap-server", either.servers(listener)), ("--topic", f"own-{way}")
    made = kafkapy("topics", *servers, "--command-config", config, "--create", *topic)
    assert (made.status, made.stdout) == (0, f"Created topic own-{way}.\n"), made.stderr
    sent = kafkapy(
        "console-producer", *servers, *topic, "--producer.config", config, stdin=b"a\nb\n"
    )
    assert (sent.status, sent.stderr) == (0, "")
    asked = ("--consumer.config", config, "--from-beginning", "--max-messages", "2")
    read = kafkapy("console-consumer", *servers, *topic, *asked)
    assert (read.status, read.stdout) == (0, "a\nb\n"), read.stderr


def test_our_tools_hear_of_a_bad_token(either: AnyBroker, issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.sign(claims(aud="strangers")))
    properties = fetching_client(file.as_uri())
    with Cluster(either.servers("SIGNED"), properties) as cluster:
        with pytest.raises(ApiError) as refused:
            cluster.metadata([])
        assert refused.value.message == f"No bootstrap server can be reached. {REFUSED}"
    heard: list[KafkaError] = []
    own = producer_config(properties) | {"bootstrap.servers": either.servers("SIGNED")}
    producer = Producer({**own, **QUIET, "error_cb": heard.append})
    wait_until(lambda: bool(producer.poll(0.1) or heard), "an error of librdkafka")
    assert heard[0].code() == KafkaError._AUTHENTICATION
    assert "invalid_token" in str(heard[0])
    config = str(apache_kafka.write_properties(tmp_path / "client.properties", properties))
    words = ("--bootstrap-server", either.servers("SIGNED"), "--topic", "t")
    asked = ("--producer.config", config, "--producer-property", "max.block.ms=3000")
    sent = kafkapy("console-producer", *words, *asked, stdin=b"a\n")
    assert sent.status != 0
    assert "invalid_token" in sent.stderr
    leaks.release_frames_of(ApiError)


def test_no_token_no_login(broker: OAuthBroker, issuer: Issuer, tmp_path: Path) -> None:
    properties = fetching_client(issuer.token_url, "wrong")
    config = str(apache_kafka.write_properties(tmp_path / "client.properties", properties))
    words = ("--bootstrap-server", broker.servers("SIGNED"))
    said = f"No bearer token can be obtained: {issuer.token_url}: HTTP 401 Unauthorized"
    listed = kafkapy("topics", *words, "--command-config", config, "--list")
    assert listed.status != 0
    assert said in listed.stderr
    sent = kafkapy("console-producer", *words, "--topic", "t", "--producer.config", config)
    assert sent.status != 0
    assert said in sent.stderr


if apache_kafka.installed():

    @pytest.mark.parametrize("way", [0, 1], ids=["made", "fetched"])
    def test_apache_kafkas_console(
        broker: OAuthBroker, issuer: Issuer, tmp_path: Path, way: int
    ) -> None:
        listener, properties = ways(issuer, tmp_path)[way]
        config = str(apache_kafka.write_properties(tmp_path / "c.properties", properties))
        words = ("--bootstrap-server", broker.servers(listener), "--topic", f"java-{way}")
        send_lines_through_java(config, *words)


def test_librdkafkas_own_login(broker: OAuthBroker, issuer: Issuer) -> None:
    delivered: list[object] = []
    config: dict[str, Any] = {
        "bootstrap.servers": broker.servers("SIGNED"),
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (issuer.sign(), time.time() + 3600),
    }
    producer = Producer({**config, **QUIET})
    producer.produce("librdkafka", b"x", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert delivered == [None]


def test_logins_are_counted(issuer: Issuer, tmp_path: Path) -> None:
    """On a broker of its own: elsewhere clients of other tests may still try again."""
    name = "server_socketservermetrics_{}_authentication_total {}"
    labels = "listener=SIGNED mechanism=OAUTHBEARER"
    with OAuthBroker(tmp_path / "logs", issuer) as broker:
        logs_in(broker.servers("SIGNED"), message_of(issuer.sign()))
        logs_in(broker.servers("SIGNED"), message_of("garbage"))
        counted = samples_of(broker.metrics_port)
    assert counted[name.format("successful", labels)] == 1
    assert counted[name.format("failed", labels)] == 1


def test_another_key_signs_and_nobody_waits(tmp_path: Path) -> None:
    """The keys are fetched for a key ID that nobody knew; meanwhile all others are served."""
    with Issuer() as issuer, OAuthBroker(tmp_path / "logs", issuer) as broker:
        signed = broker.servers("SIGNED")

        def is_taken(token: str) -> bool:
            answers = logs_in(signed, message_of(token))
            return answers[-1] is not None and answers[-1].error_code == 0

        old, before = issuer.sign(), len(issuer.requests)
        assert is_taken(old)
        issuer.rotate("second")
        new = issuer.sign()
        issuer.answers.clear()
        assert not is_taken(new)
        wait_until(lambda: len(issuer.requests) > before, "the broker asks for keys")
        assert is_taken(old)
        issuer.answers.set()
        wait_until(lambda: is_taken(new), "the new key is known")
        assert not is_taken(old)
        # An issuer that is away is told of, and changes nothing.
        issuer.status = 404
        issuer.keys.append(("third", rsa_key()))
        assert not is_taken(issuer.sign())
        said = "cannot be refreshed, the old goes on"
        wait_until(lambda: said in broker.output_text(), "a line in the log")
        assert is_taken(new)


def test_a_principal_of_a_token_is_one_for_the_authorizer(tmp_path: Path) -> None:
    rules = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with Issuer() as issuer, OAuthBroker(tmp_path / "logs", issuer, rules) as broker:
        for user, status in (("admin", 0), ("bob", 1)):
            config = apache_kafka.write_properties(tmp_path / user, unsecured_client(user))
            words = ("--bootstrap-server", broker.servers("UNSECURED"))
            topic = ("--command-config", str(config), "--create", "--topic", f"of-{user}")
            done = kafkapy("topics", *words, *topic)
            assert done.status == status, done.stderr
            assert ("Topic authorization failed" in done.stderr) is bool(status)


def test_a_session_ends_with_its_token(tmp_path: Path) -> None:
    """Clients get another token and renew over the connection they have."""
    with Issuer() as issuer, OAuthBroker(tmp_path / "logs", issuer) as broker:
        issuer.lifetime_s = 4
        properties = fetching_client(issuer.token_url) | {
            "sasl.login.refresh.window.factor": "0.5",
            "sasl.login.refresh.window.jitter": "0",
        }
        with Cluster(broker.servers("SIGNED"), properties) as cluster:

            def has_had_tokens() -> bool:
                assert cluster.metadata([], refresh=True).brokers
                return [path for path, _, _ in issuer.requests].count("/token") > 3

            wait_until(has_had_tokens, "several tokens")
        assert "session has expired" not in broker.output_text()
        assert "Failed authentication" not in broker.output_text()


@pytest.mark.parametrize("version", [None, 0], ids=["bare", "v0"])
def test_a_session_ends_for_who_cannot_renew_it(either: AnyBroker, version: int | None) -> None:
    now_s = time.time()
    good = {"sub": "alice", "iat": now_s, "exp": now_s + 3, "scope": "use"}
    message = message_of(encode_unsecured(good))
    with RawConnection(either.servers("UNSECURED")) as connection:
        shake = SaslHandshakeRequest(mechanism="OAUTHBEARER")
        of_shake = 0 if version is None else 1
        assert connection.request(shake, of_shake, SaslHandshakeResponse).error_code == 0
        if version is None:
            connection.send(len(message).to_bytes(4, "big") + message)
            assert connection.read_frame() == b""
        else:
            request = SaslAuthenticateRequest(auth_bytes=message)
            assert connection.request(request, version, SaslAuthenticateResponse).error_code == 0

        def is_served() -> bool:
            connection.send(encode_request(ListGroupsRequest(), 0, 1, "raw"))
            return connection.read_frame() is not None

        assert is_served()
        wait_until(lambda: not is_served(), "the end of the session")


def test_keys_that_cannot_be_had_end_the_start(tmp_path: Path) -> None:
    with Issuer() as issuer:
        url = f"http://127.0.0.1:{free_port()}/jwks"
        settings = {
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "200",
        }
        broker = OAuthBroker(tmp_path / "logs", issuer, settings)
        broker.launch()
        assert broker.wait() != 0
    said = f"sasl.oauthbearer.jwks.endpoint.url={url} cannot be had: {url}: "
    assert f"{said}[Errno 111] Connection refused" in broker.output_text()
    assert "Traceback" not in broker.output_text()
