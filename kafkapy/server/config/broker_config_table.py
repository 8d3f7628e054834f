"""The rows of Kafka 3.9's broker configuration table, and kafkapy's own keys (`kafkapy.*`).

The broker synonyms of the topic configs (such as `log.segment.bytes`) come from
`common.topic_configs`. Keys without effect are listed too, so that a server.properties of Apache
Kafka is accepted. `NO_EFFECT` has them with the reasons, and a test compares it with the keys that
the code reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.config_def import (
    ConfigKey,
    ConfigType,
    ConfigValue,
    ListingRule,
    Validator,
    at_least,
    between,
    list_of,
    one_of,
)
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.common.metadata_versions import metadata_version
from kafkapy.server.config.unserved_configs import UNSERVED_ROWS, WHY_UNSERVED

LONG_MAX: Final = 2**63 - 1

_Check = tuple[Validator, str] | None


def _row(kind: ConfigType, name: str, default: ConfigValue, check: _Check = None) -> ConfigKey:
    validator, allowed = check if check is not None else (None, "")
    return ConfigKey(name, kind, default, validator, allowed)


def _b(name: str, default: bool) -> ConfigKey:
    return _row(ConfigType.BOOLEAN, name, default)


def _s(name: str, default: str | None, check: _Check = None) -> ConfigKey:
    return _row(ConfigType.STRING, name, default, check)


def _i(name: str, default: int | None, check: _Check = None) -> ConfigKey:
    return _row(ConfigType.INT, name, default, check)


def _l(name: str, default: int | None, check: _Check = None) -> ConfigKey:
    return _row(ConfigType.LONG, name, default, check)


def _csv(name: str, default: list[str] | None) -> ConfigKey:
    return _row(ConfigType.LIST, name, default)


def _d(name: str, default: float, check: _Check = None) -> ConfigKey:
    return _row(ConfigType.DOUBLE, name, default, check)


def _class(name: str, default: str | None = None) -> ConfigKey:
    return _row(ConfigType.CLASS, name, default)


def _secret(name: str) -> ConfigKey:
    return _row(ConfigType.PASSWORD, name, None)


def _documented(key: ConfigKey, documentation: str) -> ConfigKey:
    return key._replace(documentation=documentation)


def _internal(key: ConfigKey) -> ConfigKey:
    return key._replace(listed=ListingRule.IF_SET)


def _authorizer_key(key: ConfigKey) -> ConfigKey:
    """A key of the authorizer, which is a plug-in in Kafka and reads its configs itself."""
    return key._replace(listed=ListingRule.IF_SET_AS_PLUGIN)


_POSITIVE: Final = at_least(1)
_NOT_NEGATIVE: Final = at_least(0)
_BUFFER: Final = at_least(-1)
_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
_ASSIGNORS: Final = "org.apache.kafka.coordinator.group.assignor"
# In the order of Kafka's default.
_PROTOCOLS: Final = ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")

BROKER_CONFIG_ROWS: Final = (
    # identity and listeners
    _i("broker.id", -1),
    _i("node.id", -1),
    _csv("process.roles", []),
    _csv("controller.quorum.voters", []),
    _b("broker.id.generation.enable", True),
    _i("reserved.broker.max.id", 1000, _NOT_NEGATIVE),
    _s("broker.rack", None),
    _s("listeners", "PLAINTEXT://:9092"),
    _s("advertised.listeners", None),
    _s("listener.security.protocol.map", ",".join(f"{p}:{p}" for p in _PROTOCOLS)),
    _s("inter.broker.listener.name", None),
    _s(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _s("control.plane.listener.name", None),
    _s("inter.broker.protocol.version", "3.9-IV0", metadata_version()),
    _s("early.start.listeners", None),
    # ZooKeeper
    _s("zookeeper.connect", None),
    _i("zookeeper.session.timeout.ms", 18000),
    _i("zookeeper.connection.timeout.ms", None),
    _i("zookeeper.max.in.flight.requests", 10, _POSITIVE),
    _b("zookeeper.set.acl", False),
    _s("zookeeper.clientCnxnSocket", None),
    _b("zookeeper.ssl.client.enable", False),
    _s("zookeeper.ssl.keystore.location", None),
    _secret("zookeeper.ssl.keystore.password"),
    _s("zookeeper.ssl.keystore.type", None),
    _s("zookeeper.ssl.truststore.location", None),
    _secret("zookeeper.ssl.truststore.password"),
    _s("zookeeper.ssl.truststore.type", None),
    _s("zookeeper.ssl.protocol", "TLSv1.2"),
    _csv("zookeeper.ssl.enabled.protocols", None),
    _csv("zookeeper.ssl.cipher.suites", None),
    _s("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS"),
    _b("zookeeper.ssl.crl.enable", False),
    _b("zookeeper.ssl.ocsp.enable", False),
    _b("zookeeper.metadata.migration.enable", False),
    # threads
    _i("num.network.threads", 3, _POSITIVE),
    _i("num.io.threads", 8, _POSITIVE),
    _i("background.threads", 10, _POSITIVE),
    _i("queued.max.requests", 500, _POSITIVE),
    _l("queued.max.request.bytes", -1),
    # sockets
    # Kafka: 102400 and 65536. -1 means the kernel's default, as in Kafka.
    _i("socket.send.buffer.bytes", -1, _BUFFER),
    _i("socket.receive.buffer.bytes", -1, _BUFFER),
    _i("socket.request.max.bytes", 104857600, _POSITIVE),
    _i("socket.listen.backlog.size", 50, _POSITIVE),
    _i("max.connections", INT_MAX, _NOT_NEGATIVE),
    _i("max.connections.per.ip", INT_MAX, _NOT_NEGATIVE),
    _s("max.connections.per.ip.overrides", ""),
    _i("max.connection.creation.rate", INT_MAX, _NOT_NEGATIVE),
    _l("connections.max.idle.ms", 600000),
    _i("connection.failed.authentication.delay.ms", 100, _NOT_NEGATIVE),
    _l("connections.max.reauth.ms", 0),
    _i("request.timeout.ms", 30000),
    # logs
    _s("log.dir", "/tmp/kafka-logs"),
    _s("log.dirs", None),
    _i("num.partitions", 1, _POSITIVE),
    _i("default.replication.factor", 1),
    _b("auto.create.topics.enable", True),
    _b("delete.topic.enable", True),
    _i("log.roll.hours", 168, _POSITIVE),
    _i("log.roll.jitter.hours", 0, _NOT_NEGATIVE),
    _l("log.flush.scheduler.interval.ms", LONG_MAX),
    _i("log.retention.minutes", None),
    _i("log.retention.hours", 168),
    _l("log.retention.check.interval.ms", 300000, _POSITIVE),
    _i("log.flush.offset.checkpoint.interval.ms", 60000, _NOT_NEGATIVE),
    _i("log.flush.start.offset.checkpoint.interval.ms", 60000, _NOT_NEGATIVE),
    _i("num.recovery.threads.per.data.dir", 1, _POSITIVE),
    _l("log.dir.failure.timeout.ms", 30000, _POSITIVE),
    _internal(_l("log.initial.task.delay.ms", 30000, _NOT_NEGATIVE)),
    _b("log.cleaner.enable", True),
    _i("log.cleaner.threads", 1, _NOT_NEGATIVE),
    _l("log.cleaner.dedupe.buffer.size", 134217728),
    _i("log.cleaner.io.buffer.size", 524288, _NOT_NEGATIVE),
    _d("log.cleaner.io.buffer.load.factor", 0.9),
    _d("log.cleaner.io.max.bytes.per.second", 1.7976931348623157e308),
    _l("log.cleaner.backoff.ms", 15000, _NOT_NEGATIVE),
    # replication
    _l("replica.lag.time.max.ms", 30000),
    _i("replica.socket.timeout.ms", 30000),
    _i("replica.socket.receive.buffer.bytes", -1, _BUFFER),
    _i("replica.fetch.max.bytes", 1048576, _NOT_NEGATIVE),
    _i("replica.fetch.response.max.bytes", 10485760, _NOT_NEGATIVE),
    _i("replica.fetch.wait.max.ms", 500),
    _i("replica.fetch.min.bytes", 1),
    _i("replica.fetch.backoff.ms", 1000, _NOT_NEGATIVE),
    _i("num.replica.fetchers", 1),
    _l("replica.high.watermark.checkpoint.interval.ms", 5000, _POSITIVE),
    _s("replica.selector.class", None),
    _i("num.replica.alter.log.dirs.threads", None),
    _i("fetch.max.bytes", 57671680, at_least(1024)),
    _i("fetch.purgatory.purge.interval.requests", 1000),
    _i("producer.purgatory.purge.interval.requests", 1000),
    _i("delete.records.purgatory.purge.interval.requests", 1),
    _i("max.incremental.fetch.session.cache.slots", 1000, _NOT_NEGATIVE),
    # controller
    _i("controller.socket.timeout.ms", 30000),
    _b("auto.leader.rebalance.enable", True),
    _i("leader.imbalance.per.broker.percentage", 10),
    _l("leader.imbalance.check.interval.seconds", 300, _POSITIVE),
    _b("controlled.shutdown.enable", True),
    _i("controlled.shutdown.max.retries", 3),
    _l("controlled.shutdown.retry.backoff.ms", 5000),
    # groups and offsets
    _i("offsets.topic.num.partitions", 50, _POSITIVE),
    _row(ConfigType.SHORT, "offsets.topic.replication.factor", 3, _POSITIVE),
    _i("offsets.topic.segment.bytes", 104857600, _POSITIVE),
    _i("offsets.topic.compression.codec", 0, between(0, 4)),
    _i("offsets.retention.minutes", 10080, _POSITIVE),
    _l("offsets.retention.check.interval.ms", 600000, _POSITIVE),
    _i("offsets.load.buffer.size", 5242880, _POSITIVE),
    _row(ConfigType.SHORT, "offsets.commit.required.acks", -1, between(-1, 1)),
    _i("offsets.commit.timeout.ms", 5000, _POSITIVE),
    _i("offset.metadata.max.bytes", 4096),
    _i("group.initial.rebalance.delay.ms", 3000),
    _i("group.min.session.timeout.ms", 6000),
    _i("group.max.session.timeout.ms", 1800000),
    _i("group.max.size", INT_MAX, _POSITIVE),
    _row(
        ConfigType.LIST,
        "group.coordinator.rebalance.protocols",
        ["classic", "consumer", "share"],
        list_of("classic", "consumer", "share"),
    ),
    _row(
        ConfigType.LIST,
        "group.consumer.assignors",
        [f"{_ASSIGNORS}.UniformAssignor", f"{_ASSIGNORS}.RangeAssignor"],
        list_of(
            "uniform",
            "range",
            f"{_ASSIGNORS}.UniformAssignor",
            f"{_ASSIGNORS}.RangeAssignor",
        ),
    ),
    _i("group.consumer.heartbeat.interval.ms", 5000, _POSITIVE),
    _i("group.consumer.min.heartbeat.interval.ms", 5000, _POSITIVE),
    _i("group.consumer.max.heartbeat.interval.ms", 15000, _POSITIVE),
    _i("group.consumer.session.timeout.ms", 45000, _POSITIVE),
    _i("group.consumer.min.session.timeout.ms", 45000, _POSITIVE),
    _i("group.consumer.max.session.timeout.ms", 60000, _POSITIVE),
    _i("group.consumer.max.size", INT_MAX, _POSITIVE),
    _internal(
        _s(
            "group.consumer.migration.policy",
            "bidirectional",
            one_of("bidirectional", "upgrade", "downgrade", "disabled", any_case=True),
        )
    ),
    _internal(_i("group.consumer.regex.refresh.interval.ms", 600000, at_least(10000))),
    # share groups: the defaults of Kafka 4
    _row(ConfigType.SHORT, "group.share.max.size", 200, between(1, 1000)),
    _i("group.share.session.timeout.ms", 45000, _POSITIVE),
    _i("group.share.min.session.timeout.ms", 45000, _POSITIVE),
    _i("group.share.max.session.timeout.ms", 60000, _POSITIVE),
    _i("group.share.heartbeat.interval.ms", 5000, _POSITIVE),
    _i("group.share.min.heartbeat.interval.ms", 5000, _POSITIVE),
    _i("group.share.max.heartbeat.interval.ms", 15000, _POSITIVE),
    _i("group.share.delivery.count.limit", 5, between(2, 10)),
    _i("group.share.record.lock.duration.ms", 30000, between(1000, 3600000)),
    _i("group.share.min.record.lock.duration.ms", 15000, between(1000, 30000)),
    _i("group.share.max.record.lock.duration.ms", 60000, between(30000, 3600000)),
    _i("group.share.partition.max.record.locks", 2000, between(100, 10000)),
    _documented(
        _i("group.share.max.share.sessions", 2000, _POSITIVE),
        "The maximum number of share sessions per broker.",
    ),
    _documented(
        _i("share.coordinator.state.topic.num.partitions", 50, _POSITIVE),
        "The number of partitions for the share-group state topic (should not change after"
        " deployment).",
    ),
    _documented(
        _row(ConfigType.SHORT, "share.coordinator.state.topic.replication.factor", 3, _POSITIVE),
        "Replication factor for the share-group state topic. Topic creation will fail until the"
        " cluster size meets this replication factor requirement.",
    ),
    _documented(
        _row(ConfigType.SHORT, "share.coordinator.state.topic.min.isr", 2, _POSITIVE),
        "Overridden min.insync.replicas for the share-group state topic.",
    ),
    _documented(
        _i("share.coordinator.state.topic.segment.bytes", 104857600, _POSITIVE),
        "The log segment size for the share-group state topic.",
    ),
    _documented(
        _i("share.coordinator.state.topic.compression.codec", 0),
        "Compression codec for the share-group state topic.",
    ),
    _documented(
        _i("share.coordinator.state.topic.prune.interval.ms", 300000, _POSITIVE),
        "The duration in milliseconds that the share coordinator will wait between pruning eligible"
        " records in share-group state topic.",
    ),
    _documented(
        _i("share.coordinator.cold.partition.snapshot.interval.ms", 300000, _POSITIVE),
        "The duration in milliseconds that the share coordinator will wait between force"
        " snapshotting share partitions which are not being updated.",
    ),
    _documented(
        _i("share.coordinator.snapshot.update.records.per.snapshot", 500, between(0, 500)),
        "The number of update records the share coordinator writes between snapshot records.",
    ),
    _documented(
        _i("share.coordinator.write.timeout.ms", 5000, _POSITIVE),
        "The duration in milliseconds that the share coordinator will wait for all replicas of the"
        " share-group state topic to receive a write.",
    ),
    _documented(
        _i("share.coordinator.load.buffer.size", 5242880, _POSITIVE),
        "Batch size for reading from the share-group state topic when loading state information"
        " into the cache (soft-limit, overridden if records are too large).",
    ),
    # transactions and producers
    _i("transaction.state.log.num.partitions", 50, _POSITIVE),
    _row(ConfigType.SHORT, "transaction.state.log.replication.factor", 3, _POSITIVE),
    _i("transaction.state.log.min.isr", 2, _POSITIVE),
    _i("transaction.state.log.segment.bytes", 104857600, _POSITIVE),
    _i("transaction.state.log.load.buffer.size", 5242880, _POSITIVE),
    _i("transaction.max.timeout.ms", 900000, _POSITIVE),
    _i("transactional.id.expiration.ms", 604800000, _POSITIVE),
    _i("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10000, _POSITIVE),
    _i("transaction.remove.expired.transaction.cleanup.interval.ms", 3600000, _POSITIVE),
    _b("transaction.partition.verification.enable", True),
    _i("producer.id.expiration.ms", 86400000, _POSITIVE),
    _internal(_i("producer.id.expiration.check.interval.ms", 600000, _POSITIVE)),
    # quotas, policies, security
    *(
        _i(f"{prefix}quota.window.{name}", default, _POSITIVE)
        for prefix in ("", "controller.", "replication.", "alter.log.dirs.replication.")
        for name, default in (("num", 11), ("size.seconds", 1))
    ),
    _class("client.quota.callback.class"),
    _class("principal.builder.class", _PRINCIPAL_BUILDER),
    _s("authorizer.class.name", ""),
    _authorizer_key(_s("super.users", "")),
    _authorizer_key(_b("allow.everyone.if.no.acl.found", False)),
    _class("create.topic.policy.class.name"),
    _class("alter.config.policy.class.name"),
    _i("max.request.partition.size.limit", 2000, _POSITIVE),
    _csv("sasl.enabled.mechanisms", ["GSSAPI"]),
    _s("sasl.mechanism.inter.broker.protocol", "GSSAPI"),
    _i("sasl.server.max.receive.size", 524288),
    _secret("sasl.jaas.config"),
    _class("sasl.server.callback.handler.class"),
    _class("sasl.login.callback.handler.class"),
    _i("sasl.login.connect.timeout.ms", None),
    _i("sasl.login.read.timeout.ms", None),
    _row(ConfigType.SHORT, "sasl.login.refresh.buffer.seconds", 300, between(0, 3600)),
    _row(ConfigType.SHORT, "sasl.login.refresh.min.period.seconds", 60, between(0, 900)),
    _d("sasl.login.refresh.window.factor", 0.8, between(0.5, 1.0)),
    _d("sasl.login.refresh.window.jitter", 0.05, between(0.0, 0.25)),
    _l("sasl.login.retry.backoff.max.ms", 10000),
    _l("sasl.login.retry.backoff.ms", 100),
    _s("sasl.kerberos.service.name", None),
    _csv("sasl.kerberos.principal.to.local.rules", ["DEFAULT"]),
    _s("sasl.kerberos.kinit.cmd", "/usr/bin/kinit"),
    _l("sasl.kerberos.min.time.before.relogin", 60000),
    _d("sasl.kerberos.ticket.renew.jitter", 0.05),
    _d("sasl.kerberos.ticket.renew.window.factor", 0.8),
    _i("sasl.oauthbearer.clock.skew.seconds", 30),
    _csv("sasl.oauthbearer.expected.audience", None),
    _s("sasl.oauthbearer.expected.issuer", None),
    _l("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3600000),
    _l("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10000),
    _l("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100),
    _s("sasl.oauthbearer.jwks.endpoint.url", None),
    _s("sasl.oauthbearer.scope.claim.name", "scope"),
    _s("sasl.oauthbearer.sub.claim.name", "sub"),
    _s("sasl.oauthbearer.token.endpoint.url", None),
    _s("ssl.client.auth", "none", one_of("none", "requested", "required")),
    _s("ssl.protocol", "TLSv1.3"),
    _csv("ssl.enabled.protocols", ["TLSv1.2", "TLSv1.3"]),
    _csv("ssl.cipher.suites", []),
    _s("ssl.keystore.type", "JKS"),
    _s("ssl.keystore.location", None),
    _secret("ssl.keystore.password"),
    _secret("ssl.key.password"),
    _secret("ssl.keystore.certificate.chain"),
    _secret("ssl.keystore.key"),
    _s("ssl.truststore.type", "JKS"),
    _s("ssl.truststore.location", None),
    _secret("ssl.truststore.password"),
    _secret("ssl.truststore.certificates"),
    _s("ssl.endpoint.identification.algorithm", "https"),
    _s("ssl.principal.mapping.rules", "DEFAULT"),
    _b("ssl.allow.dn.changes", False),
    _b("ssl.allow.san.changes", False),
    _secret("delegation.token.secret.key"),
    _secret("delegation.token.master.key"),
    _l("delegation.token.max.lifetime.ms", 604800000, _POSITIVE),
    _l("delegation.token.expiry.time.ms", 86400000, _POSITIVE),
    _l("delegation.token.expiry.check.interval.ms", 3600000, _POSITIVE),
    _secret("password.encoder.secret"),
    _secret("password.encoder.old.secret"),
    _s("password.encoder.keyfactory.algorithm", None),
    _s("password.encoder.cipher.algorithm", "AES/CBC/PKCS5Padding"),
    _i("password.encoder.key.length", 128, at_least(8)),
    _i("password.encoder.iterations", 4096, at_least(1024)),
    # metrics
    _i("metrics.num.samples", 2, _POSITIVE),
    _l("metrics.sample.window.ms", 30000, _POSITIVE),
    _s("metrics.recording.level", "INFO"),
    _csv("metric.reporters", []),
    _i("telemetry.max.bytes", 1 << 20, _POSITIVE),
    *UNSERVED_ROWS,
    # kafkapy's own
    _documented(_s("kafkapy.log.dir", None), "The directory of this broker's own log files."),
    _documented(
        _secret("kafkapy.zookeeper.sasl.jaas.config"),
        "The JAAS entry for this broker's authentication to ZooKeeper.",
    ),
    _documented(
        _secret("kafkapy.zookeeper.auth"),
        "The scheme and credentials for ZooKeeper's addauth, for example digest:user:password.",
    ),
    _documented(
        _s("kafkapy.zookeeper.listen", None),
        "HOST:PORT at which a broker without zookeeper.connect serves its embedded store to other"
        " brokers, with the ZooKeeper protocol.",
    ),
    _documented(
        _s("kafkapy.java.security.auth.login.config", None),
        "The JAAS file. The default is java.security.auth.login.config in KAFKA_OPTS.",
    ),
    _documented(
        _s("kafkapy.zookeeper.sasl.clientconfig", "Client"),
        "The section of the JAAS file for this broker's authentication to ZooKeeper.",
    ),
    _documented(
        _b("kafkapy.ssl.allow.sha1", False),
        "Whether certificates with SHA-1 signatures are accepted.",
    ),
    _documented(
        _i("kafkapy.authentication.timeout.ms", 30000, _POSITIVE),
        "The time limit for a client's authentication after it has connected.",
    ),
    _documented(
        _i("kafkapy.max.unauthenticated.connections", 1000, _POSITIVE),
        "The maximum number of connections that have not completed authentication.",
    ),
    _documented(
        _i("kafkapy.metrics.port", -1, between(-1, 65535)),
        "The port of the metrics in Prometheus' format; -1 for none.",
    ),
    _documented(_s("kafkapy.metrics.host", "127.0.0.1"), "The address of the metrics server."),
)

_ONE_LOOP: Final = "one event loop serves all requests"
_JAVA: Final = "Java classes cannot be loaded"
_CLEANER: Final = "one thread compacts one log after the other, without a limit of its rate"
_TICKETS: Final = "the Kerberos library obtains and renews tickets when they are needed"
_OLD_FORMAT: Final = "batches are stored in format v2"
_METRICS: Final = "metrics are served by kafkapy.metrics.port"

_TIERED: Final = "tiered storage is not served"

NO_EFFECT: Final[Mapping[str, str]] = {
    **WHY_UNSERVED,
    "alter.config.policy.class.name": _JAVA,
    "alter.log.dirs.replication.quota.window.num": "moves use the windows of replication.quota",
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "moves use the windows of replication.quota"
    ),
    "background.threads": _ONE_LOOP,
    "client.quota.callback.class": _JAVA,
    "control.plane.listener.name": "the controller uses the inter-broker listener",
    "create.topic.policy.class.name": _JAVA,
    "delete.records.purgatory.purge.interval.requests": "completed requests are removed at once",
    "early.start.listeners": "all listeners start together",
    "fetch.purgatory.purge.interval.requests": "completed requests are removed at once",
    "inter.broker.protocol.version": "brokers use version 3.9 between each other",
    "log.cleaner.io.buffer.load.factor": _CLEANER,
    "log.cleaner.io.buffer.size": _CLEANER,
    "log.cleaner.io.max.bytes.per.second": _CLEANER,
    "log.cleaner.threads": _CLEANER,
    "log.dir.failure.timeout.ms": "for KRaft only",
    "log.local.retention.bytes": _TIERED,
    "log.local.retention.ms": _TIERED,
    "log.message.format.version": _OLD_FORMAT,
    "max.request.partition.size.limit": "limits an API that is not served in ZooKeeper mode",
    "metric.reporters": _JAVA,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "num.io.threads": _ONE_LOOP,
    "num.network.threads": _ONE_LOOP,
    "num.recovery.threads.per.data.dir": "logs are recovered one after the other",
    "num.replica.alter.log.dirs.threads": _ONE_LOOP,
    "offsets.commit.required.acks": "offsets are committed with acks=all",
    "principal.builder.class": _JAVA,
    "producer.purgatory.purge.interval.requests": "completed requests are removed at once",
    "queued.max.requests": "requests are handled as they arrive; queued.max.request.bytes limits"
    " their memory",
    "sasl.kerberos.kinit.cmd": _TICKETS,
    "sasl.kerberos.min.time.before.relogin": _TICKETS,
    "sasl.kerberos.ticket.renew.jitter": _TICKETS,
    "sasl.kerberos.ticket.renew.window.factor": _TICKETS,
    "ssl.protocol": "ssl.enabled.protocols sets the accepted versions",
    "zookeeper.metadata.migration.enable": "KRaft is not served",
}
"""Keys of Kafka without effect here, with the reason. The broker logs a warning for each one that
is set."""

_LISTENERS: Final = "listeners=PLAINTEXT://HOST:PORT"
_CLIENT_QUOTAS: Final = (
    "kafka-configs.sh --alter --entity-type clients --entity-default --add-config"
)

REMOVED: Final[Mapping[str, str]] = {
    "advertised.host.name": f"advertised.{_LISTENERS}",
    "advertised.port": f"advertised.{_LISTENERS}",
    "host.name": _LISTENERS,
    "port": _LISTENERS,
    "quota.consumer.default": f"{_CLIENT_QUOTAS} consumer_byte_rate=...",
    "quota.producer.default": f"{_CLIENT_QUOTAS} producer_byte_rate=...",
}
"""Keys that Kafka 3.0 removed, with their replacements."""

AT_START_ONLY: Final = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    }
)
"""Keys that are accepted as dynamic configs, but have effect only in server.properties, at the
start of a broker."""
