"""Settings of `batch_producer` from Java's `ProducerConfig`. Pure.

Every name of Kafka 3.9's producer is accepted; properties about threads, metrics and classes of a
JVM have no effect. Another name is an error, because a mistyped property would silently not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafkapy.common.config_def import ConfigDef, ConfigKey, ConfigType, at_least, between, one_of
from kafkapy.common.errors import ConfigError
from kafkapy.record.codec import LEVEL_DEFAULT, Codec, codec_by_name

BATCH_BYTES: Final = 1_000_000
"""The default of `batch.size`. Java's 16 KB are for senders that wait for each record; topics
accept batches of 1,048,588 bytes.
"""

_INT_MAX: Final = 2**31 - 1
_I, _L = ConfigType.INT, ConfigType.LONG
_S, _B = ConfigType.STRING, ConfigType.BOOLEAN
_CODECS: Final = tuple(codec.label for codec in Codec)
_EFFECTIVE_CONFIGS: Final = ConfigDef(
    (
        ConfigKey("acks", _S, "all", *one_of("all", "-1", "0", "1")),
        ConfigKey("batch.size", _I, BATCH_BYTES, *at_least(0)),
        ConfigKey("buffer.memory", _L, 32 << 20, *at_least(0)),
        ConfigKey("compression.gzip.level", _I, LEVEL_DEFAULT[Codec.GZIP], *between(-1, 9)),
        ConfigKey("compression.lz4.level", _I, LEVEL_DEFAULT[Codec.LZ4], *between(1, 17)),
        ConfigKey("compression.type", _S, "none", *one_of(*_CODECS)),
        ConfigKey("compression.zstd.level", _I, LEVEL_DEFAULT[Codec.ZSTD], *between(-131072, 22)),
        ConfigKey("delivery.timeout.ms", _I, None, *at_least(0)),
        ConfigKey("enable.idempotence", _B),
        ConfigKey("max.block.ms", _I, 60_000, *at_least(0)),
        ConfigKey("max.request.size", _I, 1 << 20, *at_least(0)),
        ConfigKey("partitioner.class", _S, ""),
        ConfigKey("partitioner.ignore.keys", _B, False),
        ConfigKey("retries", _I, _INT_MAX, *at_least(0)),
        ConfigKey("transaction.timeout.ms", _I, None, *at_least(1)),
    )
)
_IGNORED_NAMES: Final = frozenset(
    {
        *("auto.include.jmx.reporter", "bootstrap.servers", "client.dns.lookup", "client.id"),
        *("connections.max.idle.ms", "default.api.timeout.ms", "enable.metrics.push"),
        *("interceptor.classes", "key.serializer", "linger.ms"),
        *("max.in.flight.requests.per.connection", "metadata.max.age.ms", "metadata.max.idle.ms"),
        *("metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms"),
        *("metric.reporters", "metrics.num.samples", "metrics.recording.level"),
        *("metrics.sample.window.ms", "partitioner.adaptive.partitioning.enable"),
        *("partitioner.availability.timeout.ms", "receive.buffer.bytes"),
        *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms"),
        *("retry.backoff.max.ms", "retry.backoff.ms", "security.protocol", "security.providers"),
        *("send.buffer.bytes", "socket.connection.setup.timeout.max.ms"),
        *("socket.connection.setup.timeout.ms", "transactional.id", "value.serializer"),
    }
)
_IGNORED_PREFIXES: Final = ("ssl.", "sasl.", "kafkapy.", "config.providers")  # of all clients
_DELIVERY_TIMEOUT_MS: Final = 120_000
# Kafka's own partitioners, and whether they ignore keys.
_PARTITIONERS: Final = {"": False, "DefaultPartitioner": False, "UniformStickyPartitioner": True}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """A producer's properties, checked. Sizes in bytes, times in ms."""

    acks: int = -1
    idempotent: bool = True
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = BATCH_BYTES
    request_bytes: int = 1 << 20
    buffer_bytes: int = 32 << 20
    delivery_timeout_ms: int = _DELIVERY_TIMEOUT_MS
    max_block_ms: int = 60_000
    retries: int = _INT_MAX
    ignore_keys: bool = False


def is_producer_name(name: str) -> bool:
    """Whether a producer has a property of this name, with an effect or without."""
    return (
        name in _EFFECTIVE_CONFIGS.keys
        or name in _IGNORED_NAMES
        or name.startswith(_IGNORED_PREFIXES)
    )


def producer_settings(properties: Mapping[str, str]) -> ProducerSettings:
    """Read the properties of a producer.

    `acks=0` is treated as 1, because a writer of whole batches waits for each batch, and so detects
    losses.

    Raises:
        ConfigError: names the property, its value and what is expected.
    """
    for name in properties:
        if not is_producer_name(name):
            raise ConfigError(f"Unknown producer configuration {name}")
    values: dict[str, Any] = _EFFECTIVE_CONFIGS.parse_all(properties)
    durable = values["acks"] in ("all", "-1") and values["retries"] > 0
    if values["enable.idempotence"] and not durable:
        raise ConfigError(
            "enable.idempotence=true needs acks=all and retries above 0, not "
            f"acks={values['acks']} and retries={values['retries']}"
        )
    codec = codec_by_name(values["compression.type"])
    return ProducerSettings(
        acks=-1 if values["acks"] in ("all", "-1") else 1,
        idempotent=durable and values["enable.idempotence"] is not False,
        codec=codec,
        level=values.get(f"compression.{codec.label}.level"),
        batch_bytes=values["batch.size"],
        request_bytes=values["max.request.size"],
        buffer_bytes=values["buffer.memory"],
        delivery_timeout_ms=_delivery_timeout_ms(values),
        max_block_ms=values["max.block.ms"],
        retries=values["retries"],
        ignore_keys=values["partitioner.ignore.keys"] or _ignores_keys(values["partitioner.class"]),
    )


def _delivery_timeout_ms(values: Mapping[str, Any]) -> int:
    """The delivery timeout. In a transaction its default is the transaction's timeout."""
    for name in ("delivery.timeout.ms", "transaction.timeout.ms"):
        if values[name] is not None:
            return int(values[name])
    return _DELIVERY_TIMEOUT_MS


def _ignores_keys(partitioner: str) -> bool:
    name = partitioner.rpartition(".")[2]
    if name not in _PARTITIONERS:
        raise ConfigError(
            f"Invalid value {partitioner} for configuration partitioner.class: a class of a JVM "
            "cannot be used here; write the column 'partition'"
        )
    return _PARTITIONERS[name]
