"""The broker's configuration: Kafka 3.9's table, checked as a whole before anything starts.

`BROKER_CONFIGS` is the declarative table (`kafka.server.KafkaConfig`); `KafkaConfig` reads
properties against it and cross-checks them, naming the key, the value and what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from kafkapy.common.config_def import ConfigDef, ConfigKey, ConfigType, ConfigValue, parse_value
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.metadata.acl_authorizer import parse_super_users
from kafkapy.replication.replica_selector import SELECTORS
from kafkapy.security.sasl import jaas_file
from kafkapy.server.config.addresses import PER_IP_OVERRIDES, parse_overrides
from kafkapy.server.config.broker_config_table import BROKER_CONFIG_ROWS
from kafkapy.server.config.listeners import Listener, parse_advertised_listeners, parse_listeners
from kafkapy.storage.producer_log import ProducerConfig


def _topic_synonyms() -> list[ConfigKey]:
    """The broker synonym of each topic key, with the topic key's default and validator."""
    keys = []
    for key in TOPIC_CONFIGS.keys.values():
        for synonym in key.synonyms[:1]:
            keys.append(ConfigKey(synonym, key.type, key.default, key.validator, key.allowed))
    return keys


BROKER_CONFIGS: Final = ConfigDef([*_topic_synonyms(), *BROKER_CONFIG_ROWS])

AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"

NOT_SERVED: Final = {
    "process.roles": "KRaft is not served: kafkapy is Kafka 3.9 in ZooKeeper mode",
    "controller.quorum.voters": "KRaft is not served: kafkapy is Kafka 3.9 in ZooKeeper mode",
}

_LISTEN: Final = "kafkapy.zookeeper.listen"

_EMBEDDED_DEFAULTS: Final = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
"""Defaults of a broker with the embedded store. A single broker cannot have three replicas, and on
a laptop a new group need not wait three seconds for other members. Kafka's own server.properties
sets the same."""


def _with_both_ids(properties: dict[str, str]) -> dict[str, str]:
    """The properties with `broker.id` and `node.id` where one is given (`populateSynonyms`).

    Raises:
        ConfigError: they differ.
    """
    ids = {key: properties[key] for key in ("broker.id", "node.id") if key in properties}
    if len(set(ids.values())) > 1:
        raise ConfigError(
            f"You must set `node.id` to the same value as `broker.id`: {ids['node.id']} is not"
            f" {ids['broker.id']}"
        )
    for one in ids.values():
        return {**properties, "broker.id": one, "node.id": one}
    return properties


_GROUP_BOUNDS: Final = (
    (
        "group.consumer.min.session.timeout.ms",
        "group.consumer.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "group.share.min.session.timeout.ms",
        "group.share.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    (
        "group.share.min.heartbeat.interval.ms",
        "group.share.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "group.share.min.record.lock.duration.ms",
        "group.share.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    ("group.share.max.size", "group.share.max.share.sessions"),
)
"""Keys whose values must be in ascending order; equal values are allowed."""
_HEARTBEAT_BOUNDS: Final = (
    ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.session.timeout.ms"),
)

_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""The keys of the retention time, in order of precedence."""
_PER_IP: Final = "max.connections.per.ip"


def check_values(properties: Mapping[str, str]) -> None:
    """Refuse values that would delete all records or reject all clients, and overrides that cannot
    be parsed. Checked at the start and for dynamic configs.

    Raises:
        ConfigError: names the key, the value and what is allowed.
    """
    retention = next((name for name in _RETENTION if name in properties), None)
    if retention is not None and BROKER_CONFIGS.parse(retention, properties[retention]) == 0:
        raise ConfigError(
            f"{retention}=0: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
        )
    overrides = parse_overrides(properties.get(PER_IP_OVERRIDES, ""))
    if not overrides and BROKER_CONFIGS.parse(_PER_IP, properties.get(_PER_IP, "1")) == 0:
        raise ConfigError(
            f"{_PER_IP} can be set to zero only if {PER_IP_OVERRIDES} property is set."
        )


class KafkaConfig:
    """A broker's complete, checked configuration.

    Fixed: nothing here changes after construction; `DynamicConfig` has the dynamic broker configs.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Parse and check.

        Raises:
            ConfigError: names the key, the value and what is allowed.
        """
        self.properties = _with_both_ids({k: v.strip() for k, v in properties.items()})
        self.values: dict[str, ConfigValue] = BROKER_CONFIGS.parse_all(
            {k: v for k, v in self.properties.items() if k in BROKER_CONFIGS.keys}
        )
        self._apply_embedded_defaults()
        self.broker_id = self.get_int("broker.id")
        self.listeners: tuple[Listener, ...] = parse_listeners(
            self.get_list("listeners"), self.get_list("listener.security.protocol.map"), "listeners"
        )
        self.advertised_listeners = parse_advertised_listeners(
            self.listeners,
            self.get_list("advertised.listeners"),
            self.get_list("listener.security.protocol.map"),
        )
        self.inter_broker_listener = self._inter_broker_listener()
        self.log_dirs = self._log_dirs()
        self.zookeeper_listen = self._zookeeper_listen()
        self.jaas = jaas_file.of_properties(self.properties)
        self._cross_check()

    @property
    def is_embedded(self) -> bool:
        """Whether metadata is kept in the embedded store of this broker."""
        return not self.values["zookeeper.connect"]

    @property
    def is_alone(self) -> bool:
        """Whether this is the only broker: no other broker can connect to the embedded store."""
        return self.is_embedded and self.zookeeper_listen is None

    def _apply_embedded_defaults(self) -> None:
        if self.is_embedded:
            for key, value in _EMBEDDED_DEFAULTS.items():
                if key not in self.properties:
                    self.values[key] = value
            if self.values["broker.id"] == -1:
                self.values["broker.id"] = self.values["node.id"] = 0

    def get_int(self, name: str) -> int:
        """The value of a numeric key that cannot be null."""
        value = self.values[name]
        assert isinstance(value, int), (name, value)
        return value

    def get_bool(self, name: str) -> bool:
        """The value of a boolean key."""
        value = self.values[name]
        assert isinstance(value, bool), (name, value)
        return value

    def get_str(self, name: str) -> str:
        """The value of a string key, "" for null."""
        value = self.values[name]
        return value if isinstance(value, str) else ""

    def get_list(self, name: str) -> list[str]:
        """The value of a list key, or of a key whose string Kafka splits."""
        value = self.values[name]
        if isinstance(value, str):
            value = parse_value(name, ConfigType.LIST, value)
        return value if isinstance(value, list) else []

    @property
    def token_secret(self) -> bytes:
        """The secret key of delegation tokens' HMACs; empty if none is set."""
        keys = ("delegation.token.secret.key", "delegation.token.master.key")
        set_keys = [key for key in keys if self.values[key] is not None]
        return self.get_str(set_keys[0]).encode() if set_keys else b""

    def _inter_broker_listener(self) -> str:
        name = self.get_str("inter.broker.listener.name")
        names = [listener.name for listener in self.advertised_listeners]
        if not name:
            protocol = self.get_str("security.inter.broker.protocol")
            name = next(
                (x.name for x in self.advertised_listeners if x.security_protocol == protocol), ""
            )
            if not name:
                raise ConfigError(
                    f"security.inter.broker.protocol={protocol} has no listener of that protocol in"
                    f" advertised.listeners ({', '.join(names)})"
                )
        if name not in names:
            raise ConfigError(
                f"inter.broker.listener.name={name} must be one of the advertised listeners:"
                f" {', '.join(names)}"
            )
        return name

    def _zookeeper_listen(self) -> tuple[str, int] | None:
        """The address at which the embedded store is served, if it is."""
        text = self.get_str(_LISTEN)
        if not text:
            return None
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or not 0 < int(port) <= 65535:
            raise ConfigError(f"Invalid value {text} for configuration {_LISTEN}: write HOST:PORT")
        if not self.is_embedded:
            raise ConfigError(
                f"{_LISTEN} and zookeeper.connect exclude each other: a broker serves its own"
                " metadata, or uses a ZooKeeper's"
            )
        return host, int(port)

    def producers(self) -> ProducerConfig:
        """Settings of logs for producers."""
        return ProducerConfig(
            self.get_int("producer.id.expiration.ms"),
            self.get_bool("transaction.partition.verification.enable"),
        )

    def _log_dirs(self) -> tuple[str, ...]:
        dirs = [d for d in self.get_list("log.dirs") or self.get_list("log.dir") if d]
        if not dirs:
            raise ConfigError("log.dirs is empty: name at least one directory")
        # Two paths of one directory (a slash, a link): a start would delete all its logs.
        if len(set(map(os.path.realpath, dirs))) != len(dirs):
            raise ConfigError(f"log.dirs={','.join(dirs)} names a directory twice")
        return tuple(dirs)

    def _cross_check(self) -> None:
        for key, reason in NOT_SERVED.items():
            if self.properties.get(key):
                raise ConfigError(f"{key}={self.properties[key]}: {reason}")
        check_values(self.properties)
        if self.broker_id < 0 and not self.get_bool("broker.id.generation.enable"):
            raise ConfigError(
                f"broker.id={self.broker_id} must be at least 0 while broker.id.generation.enable"
                " is false"
            )
        if self.broker_id > self.get_int("reserved.broker.max.id") and self.get_bool(
            "broker.id.generation.enable"
        ):
            raise ConfigError(
                f"broker.id={self.broker_id} must be at most"
                f" reserved.broker.max.id={self.get_int('reserved.broker.max.id')}"
                " while broker.id.generation.enable is true"
            )
        authorizer = self.get_str("authorizer.class.name")
        if authorizer not in ("", AUTHORIZER):
            raise ConfigError(f"authorizer.class.name={authorizer} must be {AUTHORIZER} or empty")
        parse_super_users(self.get_str("super.users"))
        selector = self.get_str("replica.selector.class")
        if selector and selector not in SELECTORS:
            raise ConfigError(
                f"replica.selector.class={selector} must be one of: {', '.join(SELECTORS)}"
            )
        queued, largest = "queued.max.request.bytes", "socket.request.max.bytes"
        if 0 < self.get_int(queued) < self.get_int(largest):
            raise ConfigError(
                f"{queued}={self.get_int(queued)} must be larger or equal to"
                f" {largest}={self.get_int(largest)}"
            )
        self._check_groups()
        wait = self.get_int("replica.fetch.wait.max.ms")
        for key in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
            if wait > self.get_int(key):
                raise ConfigError(
                    f"replica.fetch.wait.max.ms={wait} must be at most {key}={self.get_int(key)}"
                )

    def _check_groups(self) -> None:
        if "classic" not in self.get_list("group.coordinator.rebalance.protocols"):
            raise ConfigError("Disabling the 'classic' rebalance protocol is not supported.")
        for bounds in _GROUP_BOUNDS:
            for low, high in pairwise(bounds):
                if self.get_int(low) > self.get_int(high):
                    raise ConfigError(
                        f"{low}={self.get_int(low)} must be at most {high}={self.get_int(high)}"
                    )
        for heartbeat, session in _HEARTBEAT_BOUNDS:
            if self.get_int(heartbeat) >= self.get_int(session):
                raise ConfigError(
                    f"{heartbeat}={self.get_int(heartbeat)} must be less than"
                    f" {session}={self.get_int(session)}"
                )
        if not self.get_list("group.consumer.assignors"):
            raise ConfigError("group.consumer.assignors must name at least one assignor")
