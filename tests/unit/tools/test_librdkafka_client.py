"""Making librdkafka clients: unknown properties, bad values, repeated complaints."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from kafkapy.common.errors import ConfigError
from kafkapy.tools.librdkafka_client import Reporter, make


def test_unknown_properties_are_dropped_with_a_warning() -> None:
    said: list[str] = []
    config = {"bootstrap.servers": "", "nope.a": "1", "nope.b": "2"}
    make(Producer, config, Reporter(said.append))
    assert said == [
        f"WARN The configuration '{name}' was supplied but is not known."
        for name in ("nope.a", "nope.b")
    ]


def test_a_bad_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"compression\.type|compression\.codec"):
        make(Producer, {"compression.type": "zip"}, Reporter([].append))


def test_each_complaint_is_told_once() -> None:
    said: list[str] = []
    reporter = Reporter(said.append)
    for _ in range(3):
        reporter.error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    reporter.tell("other")
    assert len(said) == 2
