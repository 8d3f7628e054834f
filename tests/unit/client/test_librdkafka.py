"""Java's client properties in librdkafka's words."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import Producer

from kafkapy.client.librdkafka import consumer_config, producer_config, share_consumer_config
from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.security.kerberos.login import MODULE
from tests.harness.processes.topics import QUIET
from tests.harness.security.certificates import can_make, make_identity, make_pkcs12, make_pkcs12_of
from tests.harness.security.oauth_broker import fetching_client, unsecured_client


def test_keys_land_where_java_puts_them() -> None:
    assert producer_config({})["partitioner"] == "murmur2_random"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "true"),
        ({"acks": "-1", "retries": "3"}, "true"),
        ({"acks": "1"}, "false"),
        ({"retries": "0"}, "false"),
        ({"enable.idempotence": "false"}, "false"),
        ({"max.in.flight.requests.per.connection": "5"}, "true"),
        ({"max.in.flight.requests.per.connection": "6"}, "false"),
        ({"max.in.flight.requests.per.connection": "6", "enable.idempotence": "true"}, "true"),
    ],
)
def test_idempotence_is_javas(properties: dict[str, str], expected: str) -> None:
    assert producer_config(properties)["enable.idempotence"] == expected


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_a_property_file_of_a_java_client_is_accepted_whole(protocol: str) -> None:
    """librdkafka refuses names that it does not have."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    shared = {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{login} required username="u" password="p";',
        "sasl.login.connect.timeout.ms": "10000",
        "sasl.login.read.timeout.ms": "10000",
        "sasl.login.refresh.buffer.seconds": "300",
        "sasl.login.refresh.window.factor": "0.8",
        "sasl.login.retry.backoff.ms": "100",
        "security.providers": "com.example.Provider",
        "socket.connection.setup.timeout.max.ms": "30000",
        "ssl.keymanager.algorithm": "SunX509",
        "ssl.provider": "SunJSSE",
        "ssl.secure.random.implementation": "SHA1PRNG",
        "ssl.trustmanager.algorithm": "PKIX",
    }
    confluent_kafka.Consumer(consumer_config(shared | {"group.id": "g"})).close()
    produced = {
        "partitioner.adaptive.partitioning.enable": "false",
        "partitioner.availability.timeout.ms": "0",
        "partitioner.ignore.keys": "true",
    }
    config = producer_config(shared | produced)
    Producer(config)
    assert config["partitioner"] == "random"
    assert producer_config({"partitioner.ignore.keys": "false"})["partitioner"] == "murmur2_random"


def test_blanks_at_the_end_of_a_line_do_not_end_a_tool() -> None:
    """Java's clients ignore them."""
    config = producer_config(
        {"security.protocol": "PLAINTEXT ", "acks": "all\t", "client.id": "x "}
    )
    Producer(config)
    assert (config["acks"], config["client.id"]) == ("all", "x")


def test_values_of_java_are_ones_of_librdkafka() -> None:
    buffers = {"send.buffer.bytes": "-1", "receive.buffer.bytes": "-1"}
    Producer(producer_config(buffers | {"max.in.flight.requests.per.connection": "10"}))
    config = consumer_config(buffers | {"auto.offset.reset": "none", "group.id": "g"})
    confluent_kafka.Consumer(config).close()
    assert config["auto.offset.reset"] == "error"
    assert config["socket.receive.buffer.bytes"] == "0"


def test_the_size_of_a_response_has_no_limit_as_in_javas_consumers() -> None:
    for config in (consumer_config, share_consumer_config):
        made = config({"group.id": "g"})
        assert int(made["receive.message.max.bytes"]) == 2**31 - 1
        confluent_kafka.Consumer(made).close()


def test_other_defaults_are_javas_too() -> None:
    """A record of 1,010,000 bytes was refused, and a client was away for ten seconds."""
    made = producer_config({})
    Producer(made)
    assert made["message.max.bytes"] == str(1 << 20)
    for config in (made, consumer_config({"group.id": "g"}), share_consumer_config({})):
        assert config["reconnect.backoff.max.ms"] == "1000"
        assert config["socket.connection.setup.timeout.ms"] == "10000"
    assert producer_config({"reconnect.backoff.ms": "5000"})["reconnect.backoff.max.ms"] == "5000"


def test_the_age_of_metadata_is_the_time_of_a_refresh() -> None:
    """librdkafka's own property of that name is about its cache: new partitions were found after
    five minutes."""
    for given, made in (("1000", "1000"), (str(2**31 - 1), "3600000")):
        config = consumer_config({"group.id": "g", "metadata.max.age.ms": given})
        confluent_kafka.Consumer(config).close()
        assert config["topic.metadata.refresh.interval.ms"] == made
        assert "metadata.max.age.ms" not in config


def test_checksums_are_checked_as_in_javas_consumers() -> None:
    """librdkafka returned the records of a damaged batch as if they were sound."""
    for config in (consumer_config, share_consumer_config):
        assert config({"group.id": "g"})["check.crcs"] == "true"
        assert config({"group.id": "g", "check.crcs": "false"})["check.crcs"] == "false"


def test_numbers_that_java_takes_and_librdkafka_does_not_become_the_nearest() -> None:
    most = str(2**31 - 1)
    produced = {"batch.size": "0", "request.timeout.ms": most, "max.request.size": most}
    made = producer_config(produced | {"connections.max.idle.ms": "-1"})
    Producer(made)
    assert (made["batch.size"], made["request.timeout.ms"]) == ("1", "900000")
    assert made["connections.max.idle.ms"] == "0"  # never, as with Java's -1
    consumed = {"max.poll.interval.ms": most, "fetch.min.bytes": "0", "fetch.max.bytes": "1024"}
    config = consumer_config(consumed | {"fetch.max.wait.ms": most, "group.id": "g"})
    confluent_kafka.Consumer(config).close()
    assert config["max.poll.interval.ms"] == "86400000"
    confluent_kafka.Consumer(consumer_config({"group.id": "g", "fetch.max.bytes": most})).close()
    assert producer_config({"request.timeout.ms": "1000"})["request.timeout.ms"] == "1000"
    assert producer_config({"batch.size": "many"})["batch.size"] == "many"  # refused by its name


@pytest.mark.parametrize(
    ("name", "java_has"),
    [
        ("auto.commit.interval.ms", 2**31 - 1),
        ("max.partition.fetch.bytes", 2**31 - 1),
        ("metadata.max.age.ms", 0),
        ("metadata.max.age.ms", 2**63 - 1),
        ("reconnect.backoff.max.ms", 2**31 - 1),
        ("max.poll.interval.ms", 10_000),  # less than the session timeout
        ("session.timeout.ms", 400_000),  # more than the poll interval
        ("session.timeout.ms", 2**31 - 1),
        ("reconnect.backoff.ms", 20_000),  # more than the maximum
        ("reconnect.backoff.max.ms", 50),
        ("retry.backoff.max.ms", 2**31 - 1),
        ("retry.backoff.ms", 0),
        ("socket.connection.setup.timeout.ms", 500),
    ],
)
def test_no_consumer_is_refused_for_a_time_or_size_that_java_has(name: str, java_has: int) -> None:
    confluent_kafka.Consumer(consumer_config({"group.id": "g", name: str(java_has)})).close()


@pytest.mark.parametrize(
    ("name", "java_has"),
    [
        ("buffer.memory", 2**63 - 1),
        ("heartbeat.interval.ms", 2**31 - 1),  # of consumers that share the file
        ("linger.ms", 2**63 - 1),
        ("linger.ms", 120_000),  # the delivery timeout
        ("max.in.flight.requests.per.connection", 2**31 - 1),
        ("retry.backoff.ms", 0),
        ("session.timeout.ms", 2**31 - 1),
        ("transaction.timeout.ms", 500),
    ],
)
def test_no_producer_is_refused_for_a_time_or_size_that_java_has(name: str, java_has: int) -> None:
    Producer(producer_config({name: str(java_has)}))


@pytest.mark.parametrize(
    "given", [{"heartbeat.interval.ms": "45000"}, {"session.timeout.ms": "3000"}]
)
def test_heartbeats_that_lose_the_session_are_refused_as_by_java(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Heartbeat must be set lower than the session timeout"):
        consumer_config({"group.id": "g", **given})


@pytest.mark.parametrize(
    ("given", "delivery_ms"),
    [
        ({}, "120000"),
        ({"linger.ms": "200000"}, "230000"),
        ({"linger.ms": "200000", "request.timeout.ms": "100"}, "200100"),
        ({"linger.ms": "7", "delivery.timeout.ms": "30007"}, "30007"),
    ],
)
def test_the_default_delivery_timeout_is_not_below_linger_and_request_timeout(
    given: dict[str, str], delivery_ms: str
) -> None:
    config = producer_config(given)
    assert config["message.timeout.ms"] == delivery_ms
    Producer(config)


def test_the_assignors_that_java_has_by_default_are_accepted() -> None:
    package = "org.apache.kafka.clients.consumer"
    both = f"{package}.RangeAssignor,{package}.CooperativeStickyAssignor"
    config = consumer_config({"group.id": "g", "partition.assignment.strategy": both})
    confluent_kafka.Consumer(config).close()
    assert config["partition.assignment.strategy"] == "range"  # which Java uses of the two
    alone = {"partition.assignment.strategy": f"{package}.CooperativeStickyAssignor"}
    assert consumer_config(alone)["partition.assignment.strategy"] == "cooperative-sticky"


@pytest.mark.parametrize(
    ("given", "delivery_ms"),
    [
        ({}, "60000"),
        ({"delivery.timeout.ms": "300000"}, "60000"),
        ({"transaction.timeout.ms": "900000"}, "120000"),
        ({"transaction.timeout.ms": "5000", "delivery.timeout.ms": "4000"}, "4000"),
    ],
)
def test_a_transactional_producer_is_not_refused_for_its_delivery_timeout(
    given: dict[str, str], delivery_ms: str
) -> None:
    config = producer_config({"transactional.id": "x", **given})
    assert config["message.timeout.ms"] == delivery_ms
    Producer({**config, "bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize(
    ("given", "produces_ms", "consumes_ms"),
    [
        ({}, "30000", "30000"),
        ({"request.timeout.ms": "1500"}, "1500", "1500"),
        ({"request.timeout.ms": "5"}, "10", "1500"),
        ({"request.timeout.ms": "1500", "fetch.max.wait.ms": "3000"}, "1500", "4000"),
        ({"request.timeout.ms": "400000"}, "300000", "300000"),
        ({"request.timeout.ms": "1500", "socket.timeout.ms": "700"}, "700", "700"),
    ],
)
def test_the_request_timeout_limits_the_wait_for_a_response(
    given: dict[str, str], produces_ms: str, consumes_ms: str
) -> None:
    """librdkafka only sends it to the brokers, and waited a minute for a broker that hung."""
    made = producer_config(given)
    assert made["socket.timeout.ms"] == produces_ms
    Producer(made)
    for config in (consumer_config, share_consumer_config):
        assert config({"group.id": "g", **given})["socket.timeout.ms"] == consumes_ms
    confluent_kafka.Consumer(consumer_config({"group.id": "g", **given})).close()


def test_a_transactional_producer_is_not_refused_for_its_request_timeout() -> None:
    given = {"transactional.id": "x", "transaction.timeout.ms": "5000"}
    config = producer_config(given)
    assert config["socket.timeout.ms"] == "5000"
    Producer(config)


def test_names_that_differ_are_translated_and_java_only_ones_dropped() -> None:
    config = producer_config(
        {
            "send.buffer.bytes": "9",
            "delivery.timeout.ms": "5",
            "buffer.memory": "33554432",
            "key.serializer": "org.x",
            "max.block.ms": "1",
            "linger.ms": "7",
        }
    )
    assert config["socket.send.buffer.bytes"] == "9"
    assert config["message.timeout.ms"] == "5"
    assert config["queue.buffering.max.kbytes"] == "32768"
    assert config["linger.ms"] == "7"
    assert not {"key.serializer", "max.block.ms", "buffer.memory"} & config.keys()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"compression.type": "zstd", "compression.zstd.level": "7"}, "7"),
        ({"compression.type": "gzip", "compression.gzip.level": "-1"}, "-1"),
        ({"compression.type": "gzip", "compression.zstd.level": "7"}, None),
        ({"compression.lz4.level": "17"}, None),
    ],
)
def test_the_level_of_the_codec_in_use(properties: dict[str, str], expected: str | None) -> None:
    config = producer_config(properties)
    assert config.get("compression.level") == expected
    assert not [name for name in config if name.endswith(".level") and name.count(".") > 1]
    confluent_kafka.Producer(config)


@pytest.mark.parametrize("value", ["best", "13", "-2"])
def test_a_level_that_librdkafka_has_not(value: str) -> None:
    with pytest.raises(ConfigError, match=rf"value {value} .* compression\.lz4\.level: "):
        producer_config({"compression.type": "lz4", "compression.lz4.level": value})


def test_a_buffer_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value 32m for configuration buffer\.memory"):
        producer_config({"buffer.memory": "32m"})


@pytest.mark.parametrize(
    ("size_bytes", "kbytes"), [(0, "1"), (2000, "2"), (2**63 - 1, "2147483647")]
)
def test_a_buffer_is_not_smaller_than_given(size_bytes: int, kbytes: str) -> None:
    """A record of 2000 bytes would not fit in 1 KiB."""
    config = producer_config({"buffer.memory": str(size_bytes)})
    assert config["queue.buffering.max.kbytes"] == kbytes
    Producer(config)


def test_consumers_read_uncommitted_unless_told_otherwise() -> None:
    assert consumer_config({})["isolation.level"] == "read_uncommitted"
    asked = consumer_config({"isolation.level": "read_committed"})
    assert asked["isolation.level"] == "read_committed"


def test_the_new_group_protocol_is_asked_for() -> None:
    properties = {"group.protocol": "CONSUMER", "group.remote.assignor": "range"}
    config = consumer_config(properties)
    assert (config["group.protocol"], config["group.remote.assignor"]) == ("consumer", "range")


def test_assignors_by_class() -> None:
    names = "org.apache.kafka.clients.consumer.RangeAssignor, x.RoundRobinAssignor"
    config = consumer_config({"partition.assignment.strategy": names})
    assert config["partition.assignment.strategy"] == "range,roundrobin"


def test_bearer_tokens_are_ours_to_fetch() -> None:
    properties = unsecured_client("bob") | {
        "sasl.login.refresh.buffer.seconds": "0",
        "sasl.oauthbearer.sub.claim.name": "sub",
    }
    config = consumer_config(properties)
    assert config["sasl.mechanism"] == "OAUTHBEARER"
    assert not [name for name in config if name.startswith(("sasl.oauthbearer", "sasl.login"))]
    confluent_kafka.Consumer({**config, "group.id": "g"}).close()
    token, ends_s, principal, extensions = config["oauth_cb"]("")
    assert (principal, extensions, token.count(".")) == ("bob", {}, 2)
    assert ends_s > 0
    with pytest.raises(ConfigError, match="must be a line of OAuthBearerLoginModule"):
        consumer_config(properties | {"sasl.jaas.config": "x"})
    with pytest.raises(ApiError, match="No bearer token can be obtained: file:///missing: "):
        producer_config(fetching_client("file:///missing"))


def test_librdkafkas_own_ways_to_a_token_pass_through() -> None:
    own = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "c",
    }
    assert own.items() <= producer_config(own).items()


def test_security() -> None:
    config = consumer_config(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'x required username="u" password="p";',
            "ssl.truststore.location": "/ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert config["sasl.username"] == "u"
    assert config["sasl.password"] == "p"
    assert config["ssl.ca.location"] == "/ca.pem"
    assert config["ssl.certificate.location"] == config["ssl.key.location"] == "/me.pem"
    assert config["ssl.endpoint.identification.algorithm"] == "none"
    assert (
        not {"sasl.jaas.config", "ssl.truststore.type", "ssl.truststore.location"} & config.keys()
    )


def test_inline_pem_of_continued_lines_gets_its_line_ends_back() -> None:
    certificate = "-----BEGIN CERTIFICATE----- TUlJ Q2pE -----END CERTIFICATE-----"
    config = producer_config({"ssl.truststore.certificates": certificate})
    lines = ["-----BEGIN CERTIFICATE-----", "TUlJQ2pE", "-----END CERTIFICATE-----"]
    assert config["ssl.ca.pem"].split() == " ".join(lines).split()
    assert config["ssl.ca.pem"].strip().splitlines() == lines


def test_javas_stores_are_given_as_pem(tmp_path: Path) -> None:
    if not can_make("PKCS12 stores for librdkafka"):
        return
    identity = make_identity(tmp_path, "me")
    own, trusted = make_pkcs12(identity, "secret"), make_pkcs12_of(identity, "changeit")
    config = producer_config(
        {
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": "secret",
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.password": "changeit",
        }
    )
    certificate = identity.with_suffix(".crt").read_text()
    assert config["ssl.ca.pem"] == config["ssl.certificate.pem"] == certificate
    assert config["ssl.key.pem"] == identity.with_suffix(".key").read_text()
    assert not {name for name in config if "store" in name or name.endswith("location")}


def test_a_java_store_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.truststore\.location=/x\.jks cannot be used: No"):
        producer_config({"ssl.truststore.location": "/x.jks"})


def negotiated(properties: dict[str, str], identity: Path, latest: ssl.TLSVersion) -> str | None:
    """The TLS version of a producer's handshake with a server, None if it fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity)
    context.maximum_version = latest
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(identity.with_suffix(".crt")),
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        config = producer_config({**given, "bootstrap.servers": f"127.0.0.1:{port}", **properties})
        producer = Producer({**config, **QUIET})
        connection, _ = server.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as peer:
                return peer.version()
        except ssl.SSLError:
            return None
        finally:
            producer.flush(0)


OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("enabled", "latest", "expected"),
    [
        ("TLSv1.2,TLSv1.3", NEW, "TLSv1.3"),
        ("TLSv1.2,TLSv1.3", OLD, "TLSv1.2"),
        ("TLSv1.3", NEW, "TLSv1.3"),
        ("TLSv1.3", OLD, None),
    ],
)
def test_a_version_that_is_not_enabled_is_not_used(
    tmp_path: Path, enabled: str, latest: ssl.TLSVersion, expected: str | None
) -> None:
    """`ssl.enabled.protocols` had no effect: with TLSv1.3 alone, TLS 1.2 was used too."""
    if can_make("TLS versions of librdkafka"):
        identity = make_identity(tmp_path, "server")
        assert negotiated({"ssl.enabled.protocols": enabled}, identity, latest) == expected


JAVAS_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("suites", "latest", "expected"),
    [
        ("TLS_AES_256_GCM_SHA384", NEW, "TLSv1.3"),
        ("TLS_AES_256_GCM_SHA384", OLD, None),
        (f"TLS_AES_256_GCM_SHA384, {JAVAS_SUITE}", OLD, "TLSv1.2"),
        ("TLS_AES_256_GCM_SHA384:ECDHE-ECDSA-AES128-GCM-SHA256", OLD, "TLSv1.2"),
        (JAVAS_SUITE, OLD, "TLSv1.2"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", OLD, None),  # the key of the server is no RSA key
    ],
)
def test_javas_names_of_cipher_suites(
    tmp_path: Path, suites: str, latest: ssl.TLSVersion, expected: str | None
) -> None:
    """With suites of TLS 1.3 alone, the tools ended with "no cipher match"."""
    if can_make("cipher suites of librdkafka"):
        identity = make_identity(tmp_path, "server")
        assert negotiated({"ssl.cipher.suites": suites}, identity, latest) == expected


@pytest.mark.parametrize("suites", ["", "ECDHE-ECDSA-AES128-GCM-SHA256:DEFAULT"])
def test_no_suites_and_openssls_names_are_accepted(suites: str) -> None:
    Producer(producer_config({"security.protocol": "SSL", "ssl.cipher.suites": suites}))


def test_unknown_cipher_suites_are_refused() -> None:
    given = {"security.protocol": "SSL", "ssl.cipher.suites": "TLS_NULL_WITH_NOTHING"}
    with pytest.raises(ConfigError, match=r"^ssl\.cipher\.suites=TLS_NULL_WITH_NOTHING has no cip"):
        producer_config(given)


def test_unknown_tls_versions_are_refused() -> None:
    given = {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}
    with pytest.raises(ConfigError, match=r"protocols=TLSv1\.1,TLSv1\.2: allowed are TLSv1\.2, "):
        producer_config(given)
    producer_config(given | {"security.protocol": "PLAINTEXT"})


@pytest.mark.parametrize(
    ("name", "value"), [("ssl.enabled.protocols", "TLSv1.2"), ("ssl.cipher.suites", JAVAS_SUITE)]
)
def test_a_tls_version_that_librdkafka_cannot_turn_off(
    caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    Producer(producer_config({"security.protocol": "SSL", name: value}))
    assert caplog.messages == [
        f"{name}={value}: TLSv1.3 may be used too, because librdkafka, which produces and consumes"
        " here, cannot turn it off"
    ]


def test_delegation_tokens_are_not_for_librdkafka() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": 'x required username="id" password="h" tokenauth="true";',
    }
    with pytest.raises(ConfigError, match="cannot log in by a delegation token"):
        producer_config(properties)


KERBEROS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.kerberos.service.name": "kafka",
    "sasl.kerberos.kinit.cmd": "/usr/bin/kinit",
    "sasl.kerberos.ticket.renew.jitter": "0.1",
}


def kerberos_line(options: str) -> dict[str, str]:
    """Properties with such a JAAS line; GSSAPI is the default."""
    return {**KERBEROS, "sasl.jaas.config": f"{MODULE} required {options};"}


def test_the_wheels_have_no_kerberos() -> None:
    for properties in (kerberos_line("useTicketCache=true"), KERBEROS):
        with pytest.raises(ConfigError, match="librdkafka, which produces and consumes here, was"):
            consumer_config(properties)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            'useKeyTab=true keyTab="/k" principal="a@R"',
            {"keytab": "/k", "principal": "a@R"},
        ),
        ('useKeyTab=true principal="a@R"', {"principal": "a@R"}),
        # kinit is not run: who made the tickets keeps them
        ("useTicketCache=true", {"min.time.before.relogin": "0"}),
    ],
)
def test_a_librdkafka_with_kerberos(
    monkeypatch: pytest.MonkeyPatch, options: str, expected: dict[str, str]
) -> None:
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(confluent_kafka, "Producer", asked.append)
    config = consumer_config(kerberos_line(options))
    assert asked == [{"builtin.features": "sasl_gssapi"}]
    prefix = "sasl.kerberos."
    found = {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}
    assert found == {"service.name": "kafka", **expected}


def test_librdkafkas_own_properties_of_kerberos_pass_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confluent_kafka, "Producer", lambda config: None)
    config = consumer_config({**KERBEROS, "sasl.kerberos.keytab": "/k"})
    assert config["sasl.kerberos.keytab"] == "/k"
    assert config["sasl.kerberos.kinit.cmd"] == "/usr/bin/kinit"
    assert "sasl.kerberos.ticket.renew.jitter" not in config


def test_certificates_signed_with_sha_1_are_accepted_where_kafkas_java_does() -> None:
    given = {"security.protocol": "SSL", "kafkapy.ssl.allow.sha1": "true"}
    config = producer_config(given)
    assert config["ssl.cipher.suites"] == "DEFAULT:@SECLEVEL=0"
    assert "kafkapy.ssl.allow.sha1" not in config
    Producer(config)
    given["kafkapy.ssl.allow.sha1"] = "false"
    assert "ssl.cipher.suites" not in producer_config(given)


@pytest.mark.parametrize("config", [consumer_config, share_consumer_config])
def test_a_group_needs_a_name(config: Callable[[dict[str, str]], object]) -> None:
    with pytest.raises(ConfigError, match=r"provide a valid group\.id in the consumer"):
        config({"group.id": ""})
