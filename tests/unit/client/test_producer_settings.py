"""producer_settings: Java's names and words; what cannot hold is refused, not passed over."""

from __future__ import annotations

import pytest

from kafkapy.client.producer_settings import ProducerSettings, producer_settings
from kafkapy.common.errors import ConfigError
from kafkapy.record.codec import Codec

PACKAGE = "org.apache.kafka.clients.producer"


def test_defaults() -> None:
    assert producer_settings({"bootstrap.servers": "b:1"}) == ProducerSettings()
    assert ProducerSettings().idempotent


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"acks": "1"}, {"acks": 1, "idempotent": False}),
        ({"acks": "0"}, {"acks": 1, "idempotent": False}),
        ({"acks": "-1"}, {}),
        ({"retries": "0"}, {"retries": 0, "idempotent": False}),
        ({"enable.idempotence": "false"}, {"idempotent": False}),
        ({"compression.type": "gzip"}, {"codec": Codec.GZIP, "level": -1}),
        (
            {
                "compression.type": "zstd",
                "compression.zstd.level": "9",
                "compression.lz4.level": "1",
            },
            {"codec": Codec.ZSTD, "level": 9},
        ),
        (
            {"batch.size": "16384", "max.request.size": "99"},
            {"batch_bytes": 16384, "request_bytes": 99},
        ),
        ({"buffer.memory": "1000", "max.block.ms": "5"}, {"buffer_bytes": 1000, "max_block_ms": 5}),
        ({"delivery.timeout.ms": "7"}, {"delivery_timeout_ms": 7}),
        ({"transaction.timeout.ms": "9"}, {"delivery_timeout_ms": 9}),
        ({"partitioner.ignore.keys": "true"}, {"ignore_keys": True}),
        ({"partitioner.class": f"{PACKAGE}.internals.DefaultPartitioner"}, {}),
        ({"partitioner.class": f"{PACKAGE}.UniformStickyPartitioner"}, {"ignore_keys": True}),
        ({"kafkapy.ssl.allow.sha1": "true", "metadata.recovery.strategy": "rebootstrap"}, {}),
        ({"linger.ms": "5", "ssl.truststore.location": "x", "sasl.mechanism": "PLAIN"}, {}),
    ],
)
def test_what_a_property_says(properties: dict[str, str], expected: dict[str, object]) -> None:
    assert producer_settings(properties) == ProducerSettings(**expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"no.such.thing": "1"}, "Unknown producer configuration no.such.thing"),
        ({"message.timeout.ms": "1"}, "message.timeout.ms"),  # librdkafka's, no more
        ({"acks": "2"}, "Invalid value 2 for configuration acks"),
        ({"acks": "1", "enable.idempotence": "true"}, "needs acks=all"),
        ({"retries": "-1"}, "retries"),
        ({"batch.size": "many"}, "Invalid value many for configuration batch.size"),
        ({"compression.type": "brotli"}, "Invalid value brotli for configuration compression.type"),
        ({"compression.lz4.level": "18"}, "compression.lz4.level: Value must be no more than 17"),
        ({"partitioner.class": "my.Own"}, "my.Own for configuration partitioner.class"),
    ],
)
def test_what_is_refused(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        producer_settings(properties)
    assert words in str(caught.value)
