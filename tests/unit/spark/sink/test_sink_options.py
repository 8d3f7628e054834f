"""sink_options: Spark's sink's rules; the option or column is named."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.spark.sink.sink_options import check_columns, parse_sink_options

REQUIRED = {"kafka.bootstrap.servers": "b:9092"}


def test_the_checkpoint_that_spark_adds_is_ignored() -> None:
    options = parse_sink_options(
        {**REQUIRED, "checkpointlocation": "/tmp/x", "Topic": " t ", "kafka.acks": "all"}
    )
    assert options.topic == "t"
    assert options.client_properties == {"bootstrap.servers": "b:9092", "acks": "all"}
    assert options.producer.acks == -1


def test_a_value_of_a_query_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ID", "secret")
    provider = {
        "kafka.config.providers": "env",
        "kafka.config.providers.env.class": (
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        ),
    }
    options = parse_sink_options(REQUIRED | provider | {"kafka.client.id": "${env:ID}"})
    assert options.client_properties == {
        "bootstrap.servers": "b:9092",
        "client.id": "secret",
    }


def test_a_query_with_a_name_can_be_written() -> None:
    """Spark passes `queryName` to the sink, too."""
    assert parse_sink_options({**REQUIRED, "topic": "t", "queryName": "orders"}).topic == "t"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"),
        ({**REQUIRED, "subscribe": "t"}, "Unknown option 'subscribe' for the kafkapy sink"),
        ({**REQUIRED, "kafka.key.serializer": "x"}, "'key.serializer' is not supported as keys"),
        ({**REQUIRED, "kafka.value.serializer": "x"}, "'value.serializer' is not supported"),
        ({**REQUIRED, "kafka.transactional.id": "x"}, "Set the sink option 'exactlyOnce'"),
        ({**REQUIRED, "kafka.no.such": "1"}, "Unknown producer configuration no.such"),
        ({**REQUIRED, "kafka.sasl.mechanisms": "PLAIN"}, "Did you mean 'kafka.sasl.mechanism'?"),
        ({**REQUIRED, "exactlyOnce": "maybe"}, "'maybe' for option 'exactlyOnce'"),
        (
            {**REQUIRED, "exactlyOnce": "true", "kafka.acks": "1"},
            "exactlyOnce needs",
        ),
        (
            {**REQUIRED, "exactlyOnce": "true", "kafka.enable.idempotence": "false"},
            "exactlyOnce needs",
        ),
    ],
)
def test_wrong_options(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_sink_options(options)
    assert words in str(caught.value)


def test_a_topic_that_cannot_be() -> None:
    with pytest.raises(ApiError, match="no spaces"):
        parse_sink_options({**REQUIRED, "topic": "no spaces"})


HEADERS = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    "types",
    [
        {"value": "string"},
        {"key": "binary", "value": "binary", "partition": "int", "headers": HEADERS},
    ],
)
def test_columns_that_fit(types: dict[str, str]) -> None:
    check_columns(types, "t")
    check_columns({**types, "topic": "string"}, None)


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"key": "string"}, "Required attribute 'value' not found"),
        ({"value": "int"}, "Column 'value' must be string or binary, it is int"),
        ({"value": "string", "key": "double"}, "Column 'key'"),
        ({"value": "string", "partition": "bigint"}, "Column 'partition' must be int"),
        ({"value": "string", "headers": "map<string,string>"}, "Column 'headers'"),
        ({"value": "string", "when": "timestamp"}, "Column 'when' is not one of"),
        ({"value": "string"}, "topic option required when no 'topic' attribute is present"),
    ],
)
def test_columns_that_do_not_fit(types: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_columns(types, None)
    assert words in str(caught.value)
