"""Subscriptions to clients' metrics: what is refused, and what a client gets."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ConfigError
from kafkapy.metadata.client_metrics import (
    ClientInformation,
    InvalidRequest,
    client_metrics_entries,
    parse_subscription,
    requested_metrics,
)

CLIENT = ClientInformation("id", "billing", "apache-kafka-java", "4.3.1", "10.0.0.1", "5000")


@pytest.mark.parametrize(
    ("configs", "kind", "message"),
    [
        ({"nope": "1"}, InvalidRequest, "Unknown client metrics configuration: nope"),
        (
            {"interval.ms": "99"},
            InvalidRequest,
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            {"interval.ms": "x"},
            ConfigError,
            "Invalid value x for configuration interval.ms: Not a number of type INT"
            " (32-bit integer)",
        ),
        ({"match": "nope"}, ConfigError, "Illegal client matching pattern: nope"),
        ({"match": "name=x"}, ConfigError, "Illegal client matching pattern: name=x"),
        ({"match": "client_id=a=b"}, ConfigError, "Illegal client matching pattern: client_id=a=b"),
        ({"match": "client_id=("}, ConfigError, "Illegal client matching pattern: client_id=("),
    ],
)
def test_what_is_refused(configs: dict[str, str], kind: type[ConfigError], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_subscription(configs)
    assert (type(error.value), str(error.value)) == (kind, message)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("", True),
        ("client_id=bill.*", True),
        ("client_id=bill", False),
        ("client_id=billing, client_software_name=apache-kafka-java", True),
        ("client_id=billing,client_source_port=5001", False),
    ],
)
def test_all_patterns_match_whole_fields(match: str, matches: bool) -> None:
    assert parse_subscription({"match": match}).matches(CLIENT) is matches


def test_a_client_gets_the_union_and_the_shortest_interval() -> None:
    subscriptions = [
        parse_subscription({"metrics": "b,a", "interval.ms": "2000"}),
        parse_subscription({"metrics": "c", "interval.ms": "1000"}),
        parse_subscription({"metrics": "*", "match": "client_id=other", "interval.ms": "100"}),
    ]
    assert requested_metrics(CLIENT, subscriptions) == (("a", "b", "c"), 1000)
    everything = [*subscriptions, parse_subscription({"metrics": "*", "interval.ms": "3600000"})]
    assert requested_metrics(CLIENT, everything) == (("*",), 1000)
    assert requested_metrics(CLIENT, []) == ((), 300_000)
    assert requested_metrics(CLIENT, everything[3:]) == (("*",), 300_000)


def test_only_what_is_set_has_a_synonym() -> None:
    interval, match, metrics = client_metrics_entries({"metrics": "a, b"})
    assert [interval.value, match.value, metrics.value] == ["300000", "", "a,b"]
    assert (interval.source, interval.synonyms) == (ConfigSource.DEFAULT_CONFIG, ())
    assert metrics.source is ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    assert metrics.synonyms == (("metrics", "a,b", metrics.source),)
    assert [each.name for each in client_metrics_entries({}, ["match"])] == ["match"]
