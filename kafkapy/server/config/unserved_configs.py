"""Keys of Kafka 3.9, with its defaults, for functions that kafkapy does not have.

They are accepted and described as in Kafka, and have no effect. Each group has its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.config_def import ConfigKey, ConfigType

_B, _S, _I, _H, _L, _LIST, _C = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
    ConfigType.LIST,
    ConfigType.CLASS,
)

UNSERVED: Final[Mapping[str, tuple[ConfigKey, ...]]] = {
    "KRaft is not served": (
        ConfigKey("broker.heartbeat.interval.ms", _I, 2000),
        ConfigKey("broker.session.timeout.ms", _I, 9000),
        ConfigKey("controller.listener.names", _S, None),
        ConfigKey("controller.quorum.append.linger.ms", _I, 25),
        ConfigKey("controller.quorum.bootstrap.servers", _LIST, []),
        ConfigKey("controller.quorum.election.backoff.max.ms", _I, 1000),
        ConfigKey("controller.quorum.election.timeout.ms", _I, 1000),
        ConfigKey("controller.quorum.fetch.timeout.ms", _I, 2000),
        ConfigKey("controller.quorum.request.timeout.ms", _I, 2000),
        ConfigKey("controller.quorum.retry.backoff.ms", _I, 20),
        ConfigKey("eligible.leader.replicas.enable", _B, False),
        ConfigKey("initial.broker.registration.timeout.ms", _I, 60000),
        ConfigKey("metadata.log.dir", _S, None),
        ConfigKey("metadata.log.max.record.bytes.between.snapshots", _L, 20971520),
        ConfigKey("metadata.log.max.snapshot.interval.ms", _L, 3600000),
        ConfigKey("metadata.log.segment.bytes", _I, 1073741824),
        ConfigKey("metadata.log.segment.ms", _L, 604800000),
        ConfigKey("metadata.max.idle.interval.ms", _I, 500),
        ConfigKey("metadata.max.retention.bytes", _L, 104857600),
        ConfigKey("metadata.max.retention.ms", _L, 604800000),
        ConfigKey("sasl.mechanism.controller.protocol", _S, "GSSAPI"),
    ),
    "the group coordinator appends each change at once, on the event loop": (
        ConfigKey("group.coordinator.append.linger.ms", _I, 10),
        ConfigKey("group.coordinator.threads", _I, 1),
    ),
    "Kafka 4 does not limit the number of groups": (ConfigKey("group.share.max.groups", _H, 10),),
    "tiered storage is not served": (
        ConfigKey("remote.fetch.max.wait.ms", _I, 500),
        ConfigKey("remote.log.index.file.cache.total.size.bytes", _L, 1073741824),
        ConfigKey("remote.log.manager.copier.thread.pool.size", _I, -1),
        ConfigKey("remote.log.manager.copy.max.bytes.per.second", _L, 9223372036854775807),
        ConfigKey("remote.log.manager.copy.quota.window.num", _I, 11),
        ConfigKey("remote.log.manager.copy.quota.window.size.seconds", _I, 1),
        ConfigKey("remote.log.manager.expiration.thread.pool.size", _I, -1),
        ConfigKey("remote.log.manager.fetch.max.bytes.per.second", _L, 9223372036854775807),
        ConfigKey("remote.log.manager.fetch.quota.window.num", _I, 11),
        ConfigKey("remote.log.manager.fetch.quota.window.size.seconds", _I, 1),
        ConfigKey("remote.log.manager.task.interval.ms", _L, 30000),
        ConfigKey("remote.log.manager.thread.pool.size", _I, 10),
        ConfigKey("remote.log.metadata.custom.metadata.max.bytes", _I, 128),
        ConfigKey(
            "remote.log.metadata.manager.class.name",
            _S,
            "org.apache.kafka.server.log.remote.metadata.storage"
            ".TopicBasedRemoteLogMetadataManager",
        ),
        ConfigKey("remote.log.metadata.manager.class.path", _S, None),
        ConfigKey("remote.log.metadata.manager.impl.prefix", _S, "rlmm.config."),
        ConfigKey("remote.log.metadata.manager.listener.name", _S, None),
        ConfigKey("remote.log.reader.max.pending.tasks", _I, 100),
        ConfigKey("remote.log.reader.threads", _I, 10),
        ConfigKey("remote.log.storage.manager.class.name", _S, None),
        ConfigKey("remote.log.storage.manager.class.path", _S, None),
        ConfigKey("remote.log.storage.manager.impl.prefix", _S, "rsm.config."),
        ConfigKey("remote.log.storage.system.enable", _B, False),
    ),
    "Java classes cannot be loaded": (
        ConfigKey("sasl.client.callback.handler.class", _C, None),
        ConfigKey("sasl.login.class", _C, None),
    ),
    "TLS uses OpenSSL, without Java providers": (
        ConfigKey("security.providers", _S, None),
        ConfigKey("ssl.engine.factory.class", _C, None),
        ConfigKey("ssl.keymanager.algorithm", _S, "SunX509"),
        ConfigKey("ssl.provider", _S, None),
        ConfigKey("ssl.secure.random.implementation", _S, None),
        ConfigKey("ssl.trustmanager.algorithm", _S, "PKIX"),
    ),
    "metrics are served by kafkapy.metrics.port": (
        ConfigKey("auto.include.jmx.reporter", _B, True),
        ConfigKey("kafka.metrics.polling.interval.secs", _I, 10),
        ConfigKey("kafka.metrics.reporters", _LIST, []),
    ),
    "controller.socket.timeout.ms and replica.socket.timeout.ms limit connecting too": (
        ConfigKey("socket.connection.setup.timeout.max.ms", _L, 30000),
        ConfigKey("socket.connection.setup.timeout.ms", _L, 10000),
    ),
}
"""Configs that are not served, by reason."""

UNSERVED_ROWS: Final = tuple(key for keys in UNSERVED.values() for key in keys)
WHY_UNSERVED: Final = {key.name: reason for reason, keys in UNSERVED.items() for key in keys}
