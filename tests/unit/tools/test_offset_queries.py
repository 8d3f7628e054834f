"""Which partitions and which time `get-offsets` means."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.offset_queries import (
    by_rules,
    by_topic_and_partitions,
    in_text_order,
    parse_time,
)

ALL = [TopicPartition(t, p) for t in ("t1", "t2", "u") for p in range(6)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latest", -1),
        ("-1", -1),
        ("earliest", -2),
        ("max-timestamp", -3),
        ("earliest-local", -4),
        ("latest-tiered", -5),
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "1.5", "1_0", str(2**63), str(-(2**63) - 1), "9" * 5000]
)
def test_bad_times(text: str) -> None:
    with pytest.raises(ConfigError, match=f"Malformed time argument {text}. Please use"):
        parse_time(text)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("u", "u-0 u-1 u-2 u-3 u-4 u-5"),
        ("u:1", "u-1"),
        ("t.:1", "t1-1 t2-1"),
        ("u:1-3", "u-1 u-2"),
        ("u:4-", "u-4 u-5"),
        ("u:-2", "u-0 u-1"),
        (":5", "t1-5 t2-5 u-5"),
        ("t1:0,u:0-1", "t1-0 u-0"),
        ("u:3-3", ""),
        ("u:1,", "u-1"),
        (",", ""),
    ],
)
def test_rules(rules: str, expected: str) -> None:
    chosen = by_rules(rules)
    assert " ".join(str(tp) for tp in ALL if chosen(tp)) == expected


@pytest.mark.parametrize(
    "rules", ["u:x", "u:1:2", "u:1-2-3", "u:-1-2", "u:2147483648", "u:1-" + "9" * 5000]
)
def test_bad_rules(rules: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid rule specification: {rules}"):
        by_rules(rules)


def test_topic_and_partitions() -> None:
    chosen = by_topic_and_partitions("t1|u", "0,5")
    assert [str(tp) for tp in ALL if chosen(tp)] == ["t1-0", "t1-5", "u-0", "u-5"]
    assert not any(map(by_topic_and_partitions("", None), ALL))
    everything = by_topic_and_partitions(None, None)
    assert all(everything(tp) for tp in ALL)
    first = by_topic_and_partitions("u", "0,")
    assert [str(tp) for tp in ALL if first(tp)] == ["u-0"]
    for wrong in ("1,x", "1, 2", "2147483648", "9" * 5000):
        with pytest.raises(ConfigError, match=f"numeric partition ids, but received: {wrong}"):
            by_topic_and_partitions("t", wrong)


def test_the_order_is_that_of_the_text() -> None:
    partitions = [TopicPartition("foo", p) for p in (2, 10, 1)]
    assert [tp.partition for tp in in_text_order(partitions)] == [1, 10, 2]
