"""Subscriptions to the metrics of clients (KIP-714), which are the configs of CLIENT_METRICS
resources (`ClientMetricsConfigs`, `ClientMetricsInstanceMetadata`).

A client gets the union of the subscriptions that match it, and their shortest interval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigSource,
    ConfigType,
    format_value,
)
from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import InvalidPattern, compile_linear
from kafkapy.metadata.topic_config import ConfigEntry, ConfigSynonym

INTERVAL_MS, METRICS, MATCH = "interval.ms", "metrics", "match"
ALL_METRICS: Final = "*"
INTERVAL_MS_DEFAULT: Final = 300_000
_INTERVAL_MS: Final = range(100, 3_600_001)
_PATTERN_MEMORY_BYTES: Final = 8 << 20

CLIENT_METRICS_CONFIGS: Final = ConfigDef(
    (
        ConfigKey(
            INTERVAL_MS,
            ConfigType.INT,
            INTERVAL_MS_DEFAULT,
            allowed="[100,...,3600000]",
            documentation="Time between pushes of a client.",
        ),
        ConfigKey(
            MATCH,
            ConfigType.LIST,
            [],
            documentation="Regular expressions that select clients: SELECTOR=REGEX,...",
        ),
        ConfigKey(
            METRICS,
            ConfigType.LIST,
            [],
            documentation="Prefixes of the names of metrics; * for all.",
        ),
    )
)


class InvalidRequest(ConfigError):
    """Configs that Kafka refuses with INVALID_REQUEST, not with INVALID_CONFIG."""


class ClientInformation(NamedTuple):
    """The fields of a client that `match` selects by, under their names in `match`."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class Subscription(NamedTuple):
    """The parsed configs of one resource."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Callable[[str], object]]
    """By field, a function that returns whether a regular expression matches the whole value."""

    def matches(self, client: ClientInformation) -> bool:
        """Whether all patterns match a client."""
        return all(matches(getattr(client, field)) for field, matches in self.patterns.items())


class RequestedMetrics(NamedTuple):
    """The metrics that one client must push, by sorted prefixes, and the time between pushes."""

    metrics: tuple[str, ...]
    interval_ms: int


def parse_subscription(configs: Mapping[str, str]) -> Subscription:
    """Parse and validate the configs of one resource.

    Raises:
        ConfigError: a config is invalid; the message is Kafka's.
    """
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS.keys:
            raise InvalidRequest(f"Unknown client metrics configuration: {name}")
    values = CLIENT_METRICS_CONFIGS.parse_all(configs)
    interval_ms, metrics, match = values[INTERVAL_MS], values[METRICS], values[MATCH]
    assert isinstance(interval_ms, int)
    assert isinstance(metrics, list)
    assert isinstance(match, list)
    if interval_ms not in _INTERVAL_MS:
        raise InvalidRequest(
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and"
            " 3600000 (1 hour)"
        )
    return Subscription(tuple(metrics), interval_ms, dict(map(_pattern, match)))


def _pattern(text: str) -> tuple[str, Callable[[str], object]]:
    field, _, pattern = text.partition("=")
    field, pattern = field.strip(), pattern.strip()
    if field not in ClientInformation._fields or not pattern or "=" in pattern:
        raise ConfigError(f"Illegal client matching pattern: {text}")
    try:
        return field, compile_linear(pattern, _PATTERN_MEMORY_BYTES).fullmatch
    except InvalidPattern:
        raise ConfigError(f"Illegal client matching pattern: {text}") from None


def requested_metrics(
    client: ClientInformation, subscriptions: Iterable[Subscription]
) -> RequestedMetrics:
    """The union of the subscriptions that match a client."""
    matching = [each for each in subscriptions if each.matches(client)]
    metrics = {prefix for each in matching for prefix in each.metrics}
    if ALL_METRICS in metrics:
        metrics = {ALL_METRICS}
    interval_ms = min((each.interval_ms for each in matching), default=INTERVAL_MS_DEFAULT)
    return RequestedMetrics(tuple(sorted(metrics)), min(interval_ms, INTERVAL_MS_DEFAULT))


def client_metrics_entries(
    configs: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """A resource's rows of DescribeConfigs, sorted by name; `names` None is all of them.

    Raises:
        ConfigError: a stored value is not allowed.
    """
    entries = []
    for name, key in sorted(CLIENT_METRICS_CONFIGS.keys.items()):
        if names is not None and name not in names:
            continue
        is_set = name in configs
        value = CLIENT_METRICS_CONFIGS.parse(name, configs[name]) if is_set else key.default
        text = format_value(value)
        source = (
            ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG if is_set else ConfigSource.DEFAULT_CONFIG
        )
        synonyms = (ConfigSynonym(name, text, source),) if is_set else ()
        entries.append(
            ConfigEntry(name, text, source, False, False, key.type, key.documentation, synonyms)
        )
    return entries
