"""Translates Kafka's client properties to librdkafka's, for the console tools.

Common names pass through. Java's other properties are translated, or dropped if they have no
meaning outside of a JVM. Defaults that differ are set to Java's, so that a key lands in the same
partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Any, Final, TypeVar

from kafkapy.client.properties import int_property, parse_bootstrap_servers
from kafkapy.client.security import security_from, store_of
from kafkapy.common.errors import ConfigError, ErrorCode
from kafkapy.common.java_environment import LOGIN_CONFIG, ZOOKEEPER_SECTION
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.common.texts import is_utf8
from kafkapy.security.kerberos.gss_context import MECHANISM as GSSAPI
from kafkapy.security.kerberos.login import kerberos_login
from kafkapy.security.oauth.tokens import MECHANISM as OAUTHBEARER
from kafkapy.security.tls import stores as tls_stores

ClientT = TypeVar("ClientT")

RECORD_MAX: Final = "message.max.bytes"
_METADATA_AGE: Final = "topic.metadata.refresh.interval.ms"
_DELIVERY_TIMEOUT: Final = "message.timeout.ms"
_DELIVERY_TIMEOUT_MS: Final = 120_000  # Java's default
_TRANSACTION_TIMEOUT_MS: Final = 60_000  # the default in both clients
# Java's name -> librdkafka's.
_RENAMED: Final = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": RECORD_MAX,
    "metadata.max.age.ms": _METADATA_AGE,  # not librdkafka's own of that name: its cache
    "delivery.timeout.ms": _DELIVERY_TIMEOUT,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_CIPHERS: Final = "ssl.cipher.suites"
_TLS_VERSIONS: Final = "ssl.enabled.protocols"
# A client without a pre-shared key, which librdkafka never has, does not offer these suites of TLS
# 1.2. The list does not apply to TLS 1.3, and librdkafka refuses an empty one.
_NO_TLS_1_2_SUITES: Final = "PSK"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
# librdkafka's ranges. Java's clients accept more: 2147483647 for "never", and -1 for the system's
# buffer size and for no limit of idle time, which are 0 here.
_LIMITS: Final = {
    "auto.commit.interval.ms": (0, 86_400_000),
    "batch.size": (1, 2**31 - 1),
    "connections.max.idle.ms": (0, 2**31 - 1),
    "fetch.max.bytes": (1_000_000, 2**31 - 513),
    "fetch.min.bytes": (1, 100_000_000),
    "fetch.wait.max.ms": (0, 300_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    "linger.ms": (0, 900_000),
    _IN_FLIGHT: (1, 1_000_000),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "max.poll.interval.ms": (1, 86_400_000),
    RECORD_MAX: (1000, 1_000_000_000),
    _METADATA_AGE: (-1, 3_600_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "request.timeout.ms": (1, 900_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "session.timeout.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.ms": (1000, 2**31 - 1),
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "transaction.timeout.ms": (1000, 2**31 - 1),
}
_BUFFER_KBYTES_MAX: Final = 2**31 - 1
_SOCKET_TIMEOUT: Final = "socket.timeout.ms"
_SOCKET_TIMEOUT_MIN_MS: Final = 10
_SOCKET_TIMEOUT_MAX_MS: Final = 300_000
_REQUEST_TIMEOUT_MS: Final = 30_000  # Java's default
_FETCH_WAIT_MS: Final = 500  # the default in both clients
_FETCH_MARGIN_MS: Final = 1000  # librdkafka warns if the timeout of a fetch is closer to its wait
_READER_FETCH_WAIT_MS: Final = 10  # the broker answers a fetch at the end of a partition then
_HEARTBEAT_MS: Final = 3000  # the defaults in both clients
_SESSION_TIMEOUT_MS: Final = 45_000
_UNKNOWN_PROPERTY: Final = re.compile(r'No such configuration property: "([^"]+)"')
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")
# Pairs with their defaults. librdkafka refuses a second time below the first; Java does not.
_ORDERED: Final = (
    (("session.timeout.ms", _SESSION_TIMEOUT_MS), ("max.poll.interval.ms", 300_000)),
    (("reconnect.backoff.ms", 100), ("reconnect.backoff.max.ms", 1000)),
)
_IN_ORDER_MAX: Final = 5  # of an idempotent producer
_DROPPED: Final = frozenset(
    {
        *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
        *(
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "partitioner.class",
            "partitioner.ignore.keys",
            "interceptor.classes",
            "metric.reporters",
            "auto.include.jmx.reporter",
        ),
        *("max.block.ms", "max.poll.records", "default.api.timeout.ms", "exclude.internal.topics"),
        *("metrics.num.samples", "metrics.sample.window.ms", "metrics.recording.level"),
        *("ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type"),
        *("ssl.truststore.location", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.protocol", _TLS_VERSIONS, _CIPHERS, "sasl.jaas.config", "buffer.memory"),
        *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.provider"),
        *("ssl.secure.random.implementation", "security.providers"),
        *("metadata.max.idle.ms", "client.dns.lookup", "enable.metrics.push"),
        "socket.connection.setup.timeout.max.ms",
        *(tls_stores.ALLOW_SHA1, LOGIN_CONFIG, ZOOKEEPER_SECTION),
        *("sasl.kerberos.ticket.renew.window.factor", "sasl.kerberos.ticket.renew.jitter"),
    }
)
_DROPPED_PREFIXES: Final = tuple(
    f"sasl.login.{group}." for group in ("connect", "read", "refresh", "retry")
)
# Settings for obtaining a token, which kafkapy does for librdkafka.
_JAVA_LOGIN: Final = ("sasl.oauthbearer.", "sasl.login.", "sasl.client.callback.handler.class")
_KERBEROS: Final = "sasl.kerberos."  # other settings in librdkafka, some with equal names
_LEVELS: Final = frozenset(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
_LEVEL_MAX: Final = 12  # of librdkafka's compression.level, whatever the codec
_COOPERATIVE: Final = "cooperative-sticky"
_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": _COOPERATIVE,
    "CooperativeStickyAssignor": _COOPERATIVE,
}
# Java's defaults. With librdkafka's, a client that was disconnected tries again after ten seconds,
# and an address that does not respond takes half a minute.
_DEFAULTS: Final = {
    "reconnect.backoff.max.ms": "1000",
    "socket.connection.setup.timeout.ms": "10000",
}
# librdkafka's CRC-32 partitioner would map keys to other partitions than Java's producers do, and
# its limit of a record is a million bytes.
_PRODUCER_DEFAULTS: Final = {"partitioner": "murmur2_random", RECORD_MAX: str(1 << 20)}
# Java's consumers have no limit of a response. librdkafka's of 100 MB has no effect but that it
# repeats the fetch of a larger batch for ever. Without the check, it returns the records of a
# damaged batch as if they were sound, and no later ones.
_READER_DEFAULTS: Final = {"receive.message.max.bytes": str(2**31 - 1), "check.crcs": "true"}
_CONSUMER_DEFAULTS: Final = _READER_DEFAULTS | {
    "isolation.level": "read_uncommitted",
    "allow.auto.create.topics": "true",
}


def producer_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """The config of a `confluent_kafka.Producer`, idempotent in the same cases as Java's (KIP-679).

    Raises:
        ConfigError: a security property is wrong, or librdkafka does not have a compression level.
        ApiError: no bearer token can be obtained.
    """
    config = _PRODUCER_DEFAULTS | _translate(properties)
    if _DELIVERY_TIMEOUT not in config:
        # As in Java. librdkafka refuses a delivery timeout that is not longer than linger.ms.
        request_ms = int_property(config, "request.timeout.ms", _REQUEST_TIMEOUT_MS)
        delivery_ms = int_property(config, "linger.ms", 0) + request_ms
        config[_DELIVERY_TIMEOUT] = str(max(_DELIVERY_TIMEOUT_MS, delivery_ms))
    level = f"compression.{properties.get('compression.type')}.level"
    if level in _LEVELS and level in properties:
        config["compression.level"] = _level(level, properties[level])
    if properties.get("partitioner.ignore.keys", "").lower() == "true":
        config["partitioner"] = "random"
    if "buffer.memory" in properties:
        # Rounded up: a record of buffer.memory bytes fits.
        kbytes = -(-int_property(properties, "buffer.memory", 0) // 1024)
        kbytes = min(max(1, kbytes), _BUFFER_KBYTES_MAX)
        config.setdefault("queue.buffering.max.kbytes", str(kbytes))
    durable = config.get("acks", "all") in ("all", "-1") and config.get("retries", "1") != "0"
    durable &= int_property(properties, _IN_FLIGHT, 5) <= _IN_ORDER_MAX
    config.setdefault("enable.idempotence", "true" if durable else "false")
    if "transactional.id" in config:
        # librdkafka refuses a delivery timeout that is longer than that of the transaction.
        transaction_ms = int_property(config, "transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS)
        delivery_ms = int_property(config, _DELIVERY_TIMEOUT, 0)
        config[_DELIVERY_TIMEOUT] = str(min(delivery_ms, transaction_ms))
        # Nor does it accept a longer wait for a response.
        _set_socket_timeout(config, most_ms=transaction_ms)
    _set_socket_timeout(config)
    return config


def consumer_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """The config of a `confluent_kafka.Consumer`.

    Raises:
        ConfigError: the group has no name, or a security property is wrong, or heartbeats are
            slower than the session timeout.
        ApiError: no bearer token can be obtained.
    """
    _check_group(properties)
    heartbeat_ms = int_property(properties, "heartbeat.interval.ms", _HEARTBEAT_MS)
    if heartbeat_ms >= int_property(properties, "session.timeout.ms", _SESSION_TIMEOUT_MS):
        # librdkafka accepts this, and the member leaves and joins the group again and again.
        raise ConfigError("Heartbeat must be set lower than the session timeout")
    config = _CONSUMER_DEFAULTS | _translate(properties)
    _set_consumer_socket_timeout(config)
    if config.get("auto.offset.reset") == "none":
        config["auto.offset.reset"] = "error"
    if "group.protocol" in config:
        config["group.protocol"] = config["group.protocol"].lower()
    strategy = config.get("partition.assignment.strategy")
    if strategy is not None:
        names = [name.strip().rpartition(".")[2] for name in strategy.split(",")]
        chosen = [_ASSIGNORS.get(name, name) for name in names]
        # librdkafka refuses a mixture; Java's consumer, whose default is a mixture, is eager then.
        eager = [name for name in chosen if name != _COOPERATIVE]
        config["partition.assignment.strategy"] = ",".join(eager or chosen)
    return config


def reader_config(
    properties: Mapping[str, str], group_id: str, isolation_level: str
) -> dict[str, Any]:
    """The config of a `confluent_kafka.Consumer` that is assigned partitions, and reads them to
    their ends. librdkafka requires a group id, but nothing is committed: see `is_of_unused_group`.
    Raises as `consumer_config`."""
    return {
        **consumer_config(properties),
        "group.id": group_id,
        "allow.auto.create.topics": False,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",  # if records are deleted meanwhile
        "enable.partition.eof": True,
        "fetch.wait.max.ms": _READER_FETCH_WAIT_MS,
        "isolation.level": isolation_level,
        "log_level": 0,
    }


def create_client(
    client: Callable[[dict[str, Any]], ClientT],
    config: Mapping[str, Any],
    report: Callable[[str], None],
) -> ClientT:
    """Create a client of librdkafka. An unknown property is dropped and reported, as in Java.

    Raises:
        ConfigError: a value is not allowed.
    """
    from confluent_kafka import KafkaException

    _refuse_surrogates(config)
    if "bootstrap.servers" in config:
        # librdkafka takes port 65537 for port 1.
        parse_bootstrap_servers(config["bootstrap.servers"])
    known = dict(config)
    while True:
        try:
            return client(known)
        except KafkaException as error:
            message = error.args[0].str()
            unknown = _UNKNOWN_PROPERTY.search(message)
            if unknown is None or unknown[1] not in known:
                raise ConfigError(message) from error
            report(f"WARN The configuration '{unknown[1]}' was supplied but is not known.")
            del known[unknown[1]]


def _refuse_surrogates(config: Mapping[str, Any]) -> None:
    """Refuse lone surrogates, which escapes in a file can produce: librdkafka ends the process."""
    for name, value in config.items():
        if not is_utf8(f"{name}={value}"):
            # Without the value: it may be a secret.
            raise ConfigError(f"Invalid value for configuration {name!a}: a lone surrogate")


def is_of_unused_group(error: Any) -> bool:
    """Whether a `KafkaError` says that a consumer has no rights on its group. librdkafka requires a
    group, and looks for its coordinator. A consumer with assigned partitions does not use it, and
    Java's needs no rights on it."""
    return error is not None and error.code() == ErrorCode.GROUP_AUTHORIZATION_FAILED


def share_consumer_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """The config of a `confluent_kafka.ShareConsumer`. Raises as `consumer_config`."""
    _check_group(properties)
    config = _READER_DEFAULTS | _translate(properties)
    _set_consumer_socket_timeout(config)
    return config


def _check_group(properties: Mapping[str, str]) -> None:
    """Refuse an empty group id, for which confluent-kafka aborts the process."""
    if properties.get("group.id") == "":
        raise ConfigError(
            "To use the group management or offset commit APIs, you must provide a valid group.id"
            " in the consumer configuration."
        )


def _level(name: str, value: str) -> str:
    """A codec's compression level (KIP-390), if librdkafka supports it."""
    try:
        level = int(value)
    except ValueError:
        raise ConfigError(f"Invalid value {value} for configuration {name}: not a number") from None
    if not -1 <= level <= _LEVEL_MAX:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: librdkafka, which produces here, has"
            f" -1 (the codec's default) to {_LEVEL_MAX}"
        )
    return str(level)


def _translate(properties: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = _DEFAULTS | {
        _RENAMED.get(name, name): value.strip()  # as Java's clients do
        for name, value in properties.items()
        if not (name in _DROPPED or name in _LEVELS or name.startswith(_DROPPED_PREFIXES))
    }
    for name, (low, high) in _LIMITS.items():
        if _NUMBER.fullmatch(config.get(name, "")):
            config[name] = str(min(max(low, int(config[name])), high))
    for (first, first_default), (second, second_default) in _ORDERED:
        if first in config or second in config:
            least = int_property(config, first, first_default)
            config[second] = str(max(least, int_property(config, second, second_default)))
    security = security_from(properties)
    properties = security.properties
    config |= _stores(properties)
    if security.encrypted:
        config |= _versions_and_ciphers(properties)
    if tls_stores.sha1_is_allowed(PrefixedProperties(properties)):
        ciphers = config.get(_CIPHERS, "DEFAULT")
        config[_CIPHERS] = f"{ciphers}:{tls_stores.SECURITY_LEVEL_0}"
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        config["ssl.endpoint.identification.algorithm"] = "none"
    if security.sasl and security.sasl_mechanism == GSSAPI:
        _check_kerberos()
    if not security.sasl or "sasl.jaas.config" not in properties:
        return config
    if security.sasl_mechanism == GSSAPI:
        config = {k: v for k, v in config.items() if not k.startswith(_KERBEROS)}
        config |= _kerberos(properties)
    elif security.sasl_mechanism == OAUTHBEARER:
        config = {k: v for k, v in config.items() if not k.startswith(_JAVA_LOGIN)}
        config["oauth_cb"] = _token_callback(properties)
    else:
        user = security.credentials()
        if user.is_token:
            raise ConfigError(
                "sasl.jaas.config has tokenauth=true: librdkafka, which produces and consumes here,"
                " cannot log in by a delegation token"
            )
        config |= {"sasl.username": user.username, "sasl.password": user.password}
    return config


def _versions_and_ciphers(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate `ssl.enabled.protocols`, which librdkafka does not have, and `ssl.cipher.suites`,
    which has OpenSSL's names there.

    Raises:
        ConfigError: kafkapy's own client refuses them.
    """
    given = {name: properties[name] for name in (_TLS_VERSIONS, _CIPHERS) if properties.get(name)}
    if not given:
        return {}
    from ssl import TLSVersion  # imported on demand, as in `security`

    # OpenSSL's own lists, which librdkafka accepts, have colons.
    checked = PrefixedProperties({name: text.replace(":", ",") for name, text in given.items()})
    context = tls_stores.client_context(checked)
    if context.minimum_version is TLSVersion.TLSv1_3:
        return {_CIPHERS: _NO_TLS_1_2_SUITES}
    if context.maximum_version is TLSVersion.TLSv1_2:
        # Not refused: it is the better version, and many files of Java clients have this line.
        getLogger("kafka.security.ssl").warning(
            "%s: TLSv1.3 may be used too, because librdkafka, which produces and consumes here,"
            " cannot turn it off",
            ", ".join(f"{name}={text}" for name, text in given.items()),
        )
    # Names of TLS 1.3 suites remain: OpenSSL ignores them in this list, beside others.
    suites = map(tls_stores.openssl_cipher, checked.items(_CIPHERS))
    return {_CIPHERS: ":".join(suites)} if _CIPHERS in given else {}


def _set_socket_timeout(
    config: dict[str, Any],
    least_ms: int = _SOCKET_TIMEOUT_MIN_MS,
    most_ms: int = _SOCKET_TIMEOUT_MAX_MS,
) -> None:
    """Close a connection whose broker sends no response within request.timeout.ms, as Java's
    clients do. librdkafka only sends that time to the broker, and waits for a minute.

    JoinGroup has a limit of its own in librdkafka, which is above max.poll.interval.ms.
    """
    timeout_ms = int_property(config, "request.timeout.ms", _REQUEST_TIMEOUT_MS)
    timeout_ms = min(max(timeout_ms, least_ms), most_ms, _SOCKET_TIMEOUT_MAX_MS)
    config.setdefault(_SOCKET_TIMEOUT, str(timeout_ms))


def _set_consumer_socket_timeout(config: dict[str, Any]) -> None:
    fetch_wait_ms = int_property(config, "fetch.wait.max.ms", _FETCH_WAIT_MS)
    _set_socket_timeout(config, least_ms=fetch_wait_ms + _FETCH_MARGIN_MS)


def _token_callback(properties: Mapping[str, str]) -> Callable[[str], tuple[Any, ...]]:
    """The token callback of librdkafka: token, expiry in s, principal, extensions.

    The first token is fetched now, because librdkafka would wait ten seconds for it, and not report
    the reason for a failure. Raises as `client.oauth_login.Tokens.get`.
    """
    # Imported only if it is needed: most clients have no tokens.
    from kafkapy.client.oauth_login import TOKENS

    TOKENS.get(properties)

    def token(_: str) -> tuple[Any, ...]:
        found = TOKENS.get(properties)
        return found.value, found.expires_ms / 1000, found.principal, dict(found.extensions)

    return token


def _check_kerberos() -> None:
    """Raises ConfigError if this librdkafka has no GSSAPI."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({"builtin.features": "sasl_gssapi"})
    except KafkaException:
        raise ConfigError(
            "sasl.mechanism=GSSAPI: librdkafka, which produces and consumes here, was built without"
            " it, as it is in the wheels of confluent-kafka; where one with libsasl2 is installed:"
            " pip install --no-binary confluent-kafka confluent-kafka"
        ) from None


def _kerberos(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate a JAAS line for librdkafka, which runs kinit with a keytab, or uses the ticket
    cache.
    """
    login = kerberos_login(PrefixedProperties(properties))
    config = {f"{_KERBEROS}service.name": login.service}
    if login.principal:
        config[f"{_KERBEROS}principal"] = login.principal
    if login.keytab is None:
        return config | {f"{_KERBEROS}min.time.before.relogin": "0"}
    return config | ({f"{_KERBEROS}keytab": login.keytab} if login.keytab else {})


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    """The key and the trusted certificates for librdkafka. It reads PKCS12 only as keystores that
    OpenSSL opens without old ciphers; other stores are converted to PEM.
    """
    config = {
        own_name: tls_stores.pem_with_lines(properties[name])
        for name, own_name in _RENAMED.items()
        if own_name.endswith(".pem") and name in properties
    }
    truststore, keystore = store_of(properties, "truststore"), store_of(properties, "keystore")
    if truststore is not None and truststore.converted is not None:
        config["ssl.ca.pem"] = truststore.converted.certificates
    elif truststore is not None:
        config["ssl.ca.location"] = truststore.source.location
    if keystore is not None and keystore.converted is not None:
        config["ssl.certificate.pem"] = keystore.converted.certificates
        config["ssl.key.pem"] = keystore.converted.key
    elif keystore is not None:
        location = keystore.source.location
        config["ssl.certificate.location"] = config["ssl.key.location"] = location
    return config
