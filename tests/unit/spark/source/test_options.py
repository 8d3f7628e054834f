"""options: Spark's names and messages; whatever is wrong is named."""

from __future__ import annotations

import pickle

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.options import (
    OPTIONS,
    Position,
    PositionKind,
    SourceOptions,
    parse_options,
)
from kafkapy.spark.source.source_columns import COLUMNS

REQUIRED = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


def parse(extra: dict[str, str] | None = None, *, streaming: bool | None = False) -> SourceOptions:
    return parse_options(REQUIRED | (extra or {}), streaming=streaming)


def complaint(options: dict[str, str], *, streaming: bool | None = False) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_options(options, streaming=streaming)
    return str(caught.value)


def test_defaults_of_a_batch_and_a_stream() -> None:
    batch, stream = parse(), parse(streaming=True)
    assert batch.starting == Position(PositionKind.OFFSETS, -2, {})
    assert stream.starting == Position(PositionKind.OFFSETS, -1, {})
    assert batch.ending == Position(PositionKind.OFFSETS, -1, {})
    assert batch.fail_on_data_loss
    assert batch.columns == COLUMNS
    assert batch.poll_timeout_ms == 120_000
    assert (batch.fetch_offset_retries, batch.fetch_offset_retry_interval_ms) == (3, 10)
    assert batch.max_trigger_delay_ms == 900_000
    assert batch.isolation_level == 0


def test_times_beyond_those_of_a_client_are_its_longest() -> None:
    """Spark's options have 64 bits, Kafka's properties have 32."""
    ages = {
        "kafkaConsumer.pollTimeoutMs": str(2**63 - 1),
        "fetchOffset.retryIntervalMs": "2147483648",
    }
    options = parse(ages)
    assert options.poll_timeout_ms == 2**31 - 1
    assert options.fetch_offset_retry_interval_ms == 2**31 - 1
    wide = {**REQUIRED, "kafka.max.partition.fetch.bytes": str(2**31)}
    assert "kafka.max.partition.fetch.bytes must be at most 2147483647" in complaint(wide)


def test_names_are_read_in_any_case() -> None:
    options = parse({"FAILONDATALOSS": "False", "includeheaders": "TRUE", "MinPartitions": "7"})
    assert (options.fail_on_data_loss, options.min_partitions) == (False, 7)
    assert options.columns == (*COLUMNS, "headers")


def test_every_option_of_the_list_is_known() -> None:
    for name in OPTIONS:
        with pytest.raises(ConfigError) as caught:
            parse_options({name: "?"}, streaming=None)
        assert "Unknown" not in str(caught.value)


def test_options_are_picklable() -> None:
    options = parse_options(
        {"kafka.bootstrap.servers": "b:1", "subscribePattern": "t.*"}, streaming=True
    )
    assert pickle.loads(pickle.dumps(options)) == options


def test_subscriptions() -> None:
    assert parse({"subscribe": " a, b ,,a"}).subscription.topics == ("a", "b")
    base = {"kafka.bootstrap.servers": "b:1"}
    assigned = parse_options(base | {"assign": '{"a":[0,2]}'}, streaming=False).subscription
    assert assigned.assigned == (TopicPartition("a", 0), TopicPartition("a", 2))
    pattern = parse_options(base | {"subscribePattern": "a.c"}, streaming=False).subscription
    assert pattern.pattern is not None
    assert pattern.pattern.fullmatch("abc")


PROVIDER = {
    "kafka.config.providers": "env",
    "kafka.config.providers.env.class": (
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    ),
}


def test_client_properties_lose_their_prefix() -> None:
    options = parse({"kafka.isolation.level": "read_committed", "kafka.client.id": "me"})
    assert options.client_properties == {
        "bootstrap.servers": "b:9092",
        "isolation.level": "read_committed",
        "client.id": "me",
    }
    assert options.isolation_level == 1


def test_a_value_of_a_query_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ID", "secret")
    options = parse(PROVIDER | {"kafka.client.id": "${env:ID}"})
    assert options.client_properties == {
        "bootstrap.servers": "b:9092",
        "client.id": "secret",
    }


def test_a_global_timestamp_wins_over_partitions_and_offsets() -> None:
    by_partition = {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "startingOffsets": "earliest"}
    tp = TopicPartition("t", 0)
    assert parse(by_partition).starting == Position(PositionKind.TIMESTAMPS, None, {tp: 5})
    both = parse({**by_partition, "startingTimestamp": "9"}).starting
    assert both == Position(PositionKind.TIMESTAMPS, 9, {})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "One of the following options must be specified for Kafka source"),
        ({"subscribe": "a", "assign": "{}"}, "Only one of the following options can be specified"),
        ({"subscribe": " , "}, "No topics to subscribe to as specified value for option"),
        ({"assign": "t"}, "No topicpartitions to assign as specified value"),
        ({"assign": "{}"}, "No topicpartitions to assign"),
        ({"assign": '{"t":0}'}, 'Expected e.g. {"topicA":[0,1]'),
        ({"subscribePattern": " "}, "Pattern to subscribe is empty as specified value for option"),
        ({"subscribePattern": "("}, "'subscribePattern'"),
        ({"subscribePattern": "a{99999999999}"}, "'subscribePattern'"),
        ({"subscribe": "t"}, "Option 'kafka.bootstrap.servers' must be specified"),
        ({**REQUIRED, "minPartitions": "0"}, "minPartitions must be positive"),
        ({**REQUIRED, "minPartitions": "many"}, "Invalid value 'many' for option 'minPartitions'"),
        ({**REQUIRED, "maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ({**REQUIRED, "failOnDataLoss": "maybe"}, "'maybe' for option 'failOnDataLoss'"),
        ({**REQUIRED, "maxTriggerDelay": "soon"}, "'soon' for option 'maxTriggerDelay'"),
        ({**REQUIRED, "startingTimestamp": "now"}, "Expected a single long value, got now"),
        ({**REQUIRED, "startingTimestamp": "-1"}, "startingTimestamp is -1; it must be 0 to"),
        ({**REQUIRED, "endingTimestamp": str(2**63)}, f"endingTimestamp is {2**63}; it must"),
        (
            {**REQUIRED, "startingOffsetsByTimestamp": '{"t":{"0":-2}}'},
            "startingOffsetsByTimestamp for t-0 is -2; it must be 0 to",
        ),
        ({**REQUIRED, "startingOffsets": "newest"}, 'Expected e.g. {"topicA":{"0":23,"1":-1}'),
        ({**REQUIRED, "startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets for t-0 is -3"),
        ({**REQUIRED, "startingOffsets": "latest"}, "starting offset can't be latest for batch"),
        ({**REQUIRED, "startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be"),
        ({**REQUIRED, "endingOffsets": "earliest"}, "ending offset can't be earliest for batch"),
        ({**REQUIRED, "endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be"),
        ({**REQUIRED, "startingOffsetsByTimestampStrategy": "x"}, "error or latest"),
        ({**REQUIRED, "kafka.isolation.level": "dirty"}, "'kafka.isolation.level'"),
        ({**REQUIRED, "kafka.max.partition.fetch.bytes": "x"}, "max.partition.fetch.bytes"),
        ({**REQUIRED, "kafka.auto.offset.reset": "latest"}, "'auto.offset.reset' is not"),
        ({**REQUIRED, "kafka.key.deserializer": "x"}, "'key.deserializer' is not supported"),
        ({**REQUIRED, "kafka.value.deserializer": "x"}, "'value.deserializer' is not supported"),
        ({**REQUIRED, "kafka.enable.auto.commit": "x"}, "'enable.auto.commit' is not supported"),
        ({**REQUIRED, "kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
        ({**REQUIRED, "startingOfsets": "earliest"}, "Did you mean 'startingOffsets'?"),
        (
            {**REQUIRED, "kafka.isolation.levle": "read_committed"},
            "Unknown option 'kafka.isolation.levle' for the kafkapy source. "
            "Did you mean 'kafka.isolation.level'?",
        ),
        (
            {**REQUIRED, "kafka.ssl.truststore.locaton": "x"},
            "Unknown option 'kafka.ssl.truststore.locaton'. "
            "Did you mean 'kafka.ssl.truststore.location'?",
        ),
        ({**REQUIRED, "zzz": "1"}, "Unknown option 'zzz' for the kafkapy source."),
        (
            {**REQUIRED, "startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "t-0 would start at 5, after its end 4",
        ),
        (
            {**REQUIRED, "startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":9}}'},
            "they must name the same partitions",
        ),
        (
            {**REQUIRED, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger(9) is higher than the maxOffsetsPerTrigger(8)",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(options: dict[str, str], words: str) -> None:
    assert words in complaint(options)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    message = complaint(REQUIRED | {name: "latest"}, streaming=True)
    assert "not valid in streaming queries" in message
    assert name in message


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("30s", 30_000), ("2 m", 120_000), ("1h", 3_600_000)]
)
def test_durations(text: str, ms: int) -> None:
    assert parse({"maxTriggerDelay": text}).max_trigger_delay_ms == ms


def test_a_duration_of_thousands_of_digits_is_refused() -> None:
    assert "a duration such as" in complaint(REQUIRED | {"maxTriggerDelay": "9" * 5000})


def test_a_group_for_finished_offsets_is_for_streams() -> None:
    group = {"commitGroupId": " lag "}
    assert parse(group, streaming=True).commit_group_id == "lag"
    assert parse(streaming=True).commit_group_id is None
    assert "streaming queries only" in complaint(REQUIRED | group, streaming=False)
    assert "'commitGroupId'" in complaint(REQUIRED | {"commitGroupId": " "}, streaming=True)


def test_before_it_is_known_whether_it_streams_both_pass() -> None:
    parse({"startingOffsets": "latest"}, streaming=None)
    parse({"endingOffsets": "latest"}, streaming=None)
