"""Changes of broker configs while brokers run (`kafka.server.DynamicBrokerConfig`).

Keys that are in no table are custom configs of plug-ins: they are stored as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    ListingRule,
    at_least,
)
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import TOPIC_CONFIGS

_LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")

# Configs of a served listener that may change; its others stay until a restart.
TLS_STORES: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)
_SECURITY: Final = TLS_STORES | frozenset(
    {
        "ssl.protocol",
        "ssl.provider",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.endpoint.identification.algorithm",
        "ssl.secure.random.implementation",
        "ssl.engine.factory.class",
    }
)
_LISTENER: Final = frozenset(
    {
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.kerberos.service.name",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.buffer.seconds",
        "ssl.client.auth",
    }
)
# The configs that define the listeners.
LISTENER_DEFINITIONS: Final = frozenset(
    {"listeners", "advertised.listeners", "listener.security.protocol.map"}
)
_CLUSTER_LISTENER: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
THREAD_COUNTS: Final = frozenset(
    {
        "num.io.threads",
        "num.network.threads",
        "num.replica.fetchers",
        "num.recovery.threads.per.data.dir",
        "background.threads",
    }
)
_LOG: Final = frozenset(
    key.synonyms[0]
    for key in TOPIC_CONFIGS.keys.values()
    if key.synonyms and key.name != "message.format.version"
)
_OTHER_KEYS: Final = frozenset(
    {
        "log.cleaner.threads",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.backoff.ms",
        "message.max.bytes",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "metric.reporters",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.fetch.max.wait.ms",
    }
)
# Dynamic only: not in any table of static configs.
_QUOTA_CONFIGS: Final = ConfigDef(
    ConfigKey(name, ConfigType.LONG, 2**63 - 1, *at_least(0))
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
QUOTAS: Final = frozenset(_QUOTA_CONFIGS.keys)

PER_BROKER: Final = _SECURITY | _LISTENER
_NEW_LISTENER_KEYS: Final = PER_BROKER - LISTENER_DEFINITIONS - TLS_STORES
_ALL_LISTENER_KEYS: Final = PER_BROKER | _CLUSTER_LISTENER
ALL_DYNAMIC: Final = (
    _SECURITY | _LISTENER | _CLUSTER_LISTENER | THREAD_COUNTS | _LOG | _OTHER_KEYS | QUOTAS
)


def base_name(name: str) -> str:
    """The config behind `listener.name.<listener>.<config>`; other names are unchanged."""
    match = _LISTENER_KEY.fullmatch(name)
    return match.group(1) if match else name


def listener_configs_at_start(configs: Mapping[str, str], *, stores: bool) -> dict[str, str]:
    """A broker's own configs that define its listeners at start, and their security; with their TLS
    stores, or without."""
    return {
        name: text
        for name, text in configs.items()
        if (base_name(name) != name or name in PER_BROKER)
        and (stores or base_name(name) not in TLS_STORES)
    }


def validate_dynamic_configs(
    configs: Mapping[str, str],
    definitions: ConfigDef,
    *,
    per_broker: bool,
    current: Mapping[str, ConfigValue],
) -> None:
    """Refuse configs that cannot be set while the broker runs; `current` has the values in force.

    Raises:
        ConfigError: names the keys, or the key with its value and what is allowed.
    """
    _refuse(
        "Cannot update these configs dynamically",
        (n for n in configs if n in definitions.keys and n not in ALL_DYNAMIC),
    )
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener"
        " prefix",
        (n for n in configs if n in TLS_STORES),
        collection="HashSet",
    )
    for name, text in configs.items():
        _check_value(name, text, definitions, current)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            (n for n in configs if _only_per_broker(n)),
        )


def restart_only_keys(
    listeners: Iterable[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, list[str]]:
    """The changed keys of each of these listeners that take effect only at a restart: all except
    its stores and limits (`DynamicListenerConfig.validateReconfiguration`).

    Raises:
        ConfigError: such a key changes together with a config of all listeners. Kafka compares
            them only then; otherwise the change is accepted, and takes effect at a restart.
    """
    changed = _changed(before, after)
    found = {}
    for listener in listeners:
        prefix = f"listener.name.{listener.lower()}."
        keys = [key for key in changed if key.startswith(prefix)]
        restart_only = [key for key in keys if base_name(key) not in TLS_STORES | _CLUSTER_LISTENER]
        if restart_only and not _ALL_LISTENER_KEYS.isdisjoint(changed):
            raise ConfigError(
                f"Configs cannot be updated dynamically for existing listener {listener}, restart"
                f" broker or create a new listener for update: {', '.join(restart_only)}"
            )
        if restart_only:
            found[listener] = restart_only
    return found


def keys_for_new_listeners(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The changed configs of all listeners that served listeners do not adopt."""
    return [key for key in _changed(before, after) if key in _NEW_LISTENER_KEYS]


def check_values_of_listeners(
    listeners: Iterable[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    definitions: ConfigDef,
) -> None:
    """Refuse invalid values of these listeners, and of their mechanisms.

    Raises:
        ConfigError: names the key, its value and what is allowed.
    """
    prefixes = tuple(f"listener.name.{listener.lower()}." for listener in listeners)
    for key in _changed(before, after):
        if key not in after or not key.startswith(prefixes):
            continue
        base = base_name(key)
        config_name = base if base in definitions.keys else base.partition(".")[2]
        known = definitions.keys.get(config_name)
        if known is not None and known.listed is not ListingRule.IF_SET_AS_PLUGIN:
            definitions.parse(config_name, after[key])


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def _only_per_broker(name: str) -> bool:
    if base_name(name) != name:
        return base_name(name) not in _CLUSTER_LISTENER
    return name in PER_BROKER


def _refuse(message: str, names: Iterable[str], collection: str = "Set") -> None:
    """Raise ConfigError for these names. `collection` is the Scala collection in Kafka's
    message."""
    found = sorted(names)
    if found:
        raise ConfigError(f"{message}: {collection}({', '.join(found)})")


def _check_value(
    name: str, text: str, definitions: ConfigDef, current: Mapping[str, ConfigValue]
) -> None:
    base = base_name(name)
    if base in QUOTAS:
        _QUOTA_CONFIGS.parse(base, text)
    if base not in definitions.keys or base not in ALL_DYNAMIC:
        return
    value = definitions.parse(base, text)
    current_count = current.get(base)
    if base in THREAD_COUNTS and isinstance(value, int) and isinstance(current_count, int):
        _check_thread_count(name, value, current_count)


def _check_thread_count(name: str, value: int, current_count: int) -> None:
    """Refuse thread counts below half or above double the current one (`DynamicThreadPool`)."""
    problem = None
    if value <= 0:
        problem = "value should be at least 1"
    elif value < current_count // 2:
        problem = f"value should be at least half the current value {current_count}"
    elif value > current_count * 2:
        problem = f"value should not be greater than double the current value {current_count}"
    if problem:
        raise ConfigError(
            f"Dynamic thread count update validation failed for {name}={value}, {problem}"
        )
