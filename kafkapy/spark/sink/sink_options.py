"""The options and columns of a write, which are those of Spark's own Kafka sink. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafkapy.client.config_providers import resolved
from kafkapy.client.producer_settings import ProducerSettings, producer_settings
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import validate_topic_name
from kafkapy.spark.source.connection_names import refuse_unknown_connection_names
from kafkapy.spark.source.option_table import SINK_OPTIONS

COLUMN_TYPES: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_KNOWN: Final = frozenset(option.name.lower() for option in SINK_OPTIONS)
# Spark's own options, without effect here. `queryName` is that of `DataStreamWriter`.
_IGNORED: Final = frozenset(("checkpointlocation", "includeheaders", "queryname"))
_FORBIDDEN: Final = {
    "key.serializer": "is not supported as keys are written as bytes",
    "value.serializer": "is not supported as values are written as bytes",
    "transactional.id": "is not supported. Set the sink option 'exactlyOnce' to 'true': each task "
    "of each micro-batch has an id of its own",
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The checked options of one write. `topic` takes precedence over the column `topic`."""

    topic: str | None
    client_properties: dict[str, str]
    producer: ProducerSettings
    exactly_once: bool = False
    transactional_id_prefix: str = "kafkapy"


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Read and check the options of a write.

    Raises:
        ConfigError: names the option and the fault.
        ApiError: INVALID_TOPIC_EXCEPTION for a topic's name.
    """
    options = {name.lower(): value for name, value in given.items()}
    properties: dict[str, str] = {}
    for name, value in options.items():
        if name.startswith("kafka."):
            properties[name.removeprefix("kafka.")] = value
        elif name not in _KNOWN and name not in _IGNORED:
            raise ConfigError(f"Unknown option '{name}' for the kafkapy sink")
    properties = resolved(properties)
    refuse_unknown_connection_names(properties)
    for name, reason in _FORBIDDEN.items():
        if name in properties:
            raise ConfigError(f"Kafka option '{name}' {reason}")
    if not properties.get("bootstrap.servers", "").strip():
        raise ConfigError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"
        )
    topic = options.get("topic", "").strip() or None
    if topic is not None:
        validate_topic_name(topic)
    producer = producer_settings(properties)
    exactly_once = _boolean(options.get("exactlyonce", "false"))
    if exactly_once and not producer.idempotent:
        raise ConfigError(
            "exactlyOnce needs kafka.acks=all, kafka.retries above 0, and an idempotent producer "
            "(not kafka.enable.idempotence=false)"
        )
    return SinkOptions(
        topic,
        properties,
        producer,
        exactly_once=exactly_once,
        transactional_id_prefix=options.get("transactionalidprefix", "kafkapy"),
    )


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ConfigError(
            f"Invalid value '{text}' for option 'exactlyOnce': it must be true or false"
        )
    return text.strip().lower() == "true"


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Check the columns (name to Spark type) of a write.

    Raises:
        ConfigError: names the column.
    """
    for name, kind in types.items():
        allowed = COLUMN_TYPES.get(name)
        if allowed is None:
            raise ConfigError(
                f"Column '{name}' is not one of {', '.join(COLUMN_TYPES)}; drop or rename it"
            )
        if kind not in allowed:
            raise ConfigError(f"Column '{name}' must be {' or '.join(allowed)}, it is {kind}")
    if "value" not in types:
        raise ConfigError("Required attribute 'value' not found")
    if topic is None and "topic" not in types:
        raise ConfigError(
            "topic option required when no 'topic' attribute is present. Use the topic option for "
            "setting a topic."
        )
