"""Plans of `--reset-offsets`: every scenario over the same three partitions."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.offset_reset import (
    Offsets,
    Reset,
    Scenario,
    TopicScope,
    expand,
    parse_topic_scope,
    plan,
)

A, B, EMPTY = (TopicPartition("t", index) for index in range(3))
LOGS = {A: (0, 10), B: (5, 20), EMPTY: (0, 0)}
COMMITTED = {A: 4, B: 9}


class Logs:
    """Records a second apart, the first at 0; an `OffsetSource`."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {tp: LOGS[tp][0] for tp in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {tp: LOGS[tp][1] for tp in partitions}

    def at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        found = {}
        for tp in partitions:
            start, end = LOGS[tp]
            offset = max(start, timestamp_ms // 1000)
            found[tp] = offset if offset < end else -1
        return found


def planned(scenario: Scenario, value: int = 0) -> tuple[list[int], list[str]]:
    told: list[str] = []
    found = plan(Reset(scenario, value), [EMPTY, B, A], COMMITTED, Logs(), told.append)
    assert list(found) == [A, B, EMPTY], "sorted, whatever the order of the question"
    return list(found.values()), told


@pytest.mark.parametrize(
    ("scenario", "value", "expected", "warnings"),
    [
        (Scenario.TO_EARLIEST, 0, [0, 5, 0], 0),
        (Scenario.TO_LATEST, 0, [10, 20, 0], 0),
        (Scenario.TO_OFFSET, 7, [7, 7, 0], 1),
        (Scenario.TO_OFFSET, 2, [2, 5, 0], 2),
        (Scenario.TO_OFFSET, 99, [10, 20, 0], 3),
        (Scenario.TO_CURRENT, 0, [4, 9, 0], 0),
        (Scenario.TO_DATETIME, 6000, [6, 6, 0], 1),
        (Scenario.BY_DURATION, 15000, [10, 15, 0], 2),
    ],
)
def test_scenarios(scenario: Scenario, value: int, expected: list[int], warnings: int) -> None:
    found, told = planned(scenario, value)
    assert (found, len(told)) == (expected, warnings)


@pytest.mark.parametrize(
    ("by", "expected"), [(1, [5, 10]), (-2, [2, 7]), (-9, [0, 5]), (99, [10, 20])]
)
def test_shifts_stay_inside_the_log(by: int, expected: list[int]) -> None:
    found = plan(Reset(Scenario.SHIFT_BY, by), [A, B], COMMITTED, Logs(), lambda text: None)
    assert list(found.values()) == expected


def test_what_has_no_commit_cannot_be_shifted() -> None:
    with pytest.raises(
        ConfigError, match="Cannot shift offset for partition t-2 since there is no"
    ):
        planned(Scenario.SHIFT_BY, 1)


def test_a_file_names_the_partitions_itself() -> None:
    told: list[str] = []
    reset = Reset(Scenario.FROM_FILE, offsets={B: 99, A: 3})
    assert plan(reset, [], {}, Logs(), told.append) == {A: 3, B: 20}
    assert told == [
        "WARN New offset (99) is higher than latest offset for topic partition t-1. Value will be"
        " set to 20"
    ]


def test_a_time_after_the_last_record_is_told() -> None:
    told = planned(Scenario.TO_DATETIME, 6000)[1]
    assert told == [
        "\nWarn: Partition 2 from topic t is empty. Falling back to latest known offset."
    ]


@pytest.mark.parametrize(
    ("word", "scope"),
    [
        ("t", TopicScope("t", None)),
        ("t:0,2", TopicScope("t", (0, 2))),
        ("a.b:7", TopicScope("a.b", (7,))),
        ("t:1,", TopicScope("t", (1,))),
    ],
)
def test_scopes(word: str, scope: TopicScope) -> None:
    assert parse_topic_scope(word) == scope


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("t:", "Invalid topic arg 't:', expected topic name and partitions"),
        (":1", "Invalid topic arg ':1', expected"),
        ("t:1:2", "Invalid topic arg 't:1:2', expected"),
        ("t:x", "Invalid partition 'x' specified in topic arg 't:x''"),
        ("t:,1", "Invalid partition '' specified"),
        (f"t:{2**31}", "Invalid partition '2147483648' specified"),
        (f"t:{'9' * 5000}", "Invalid partition '9999"),
        ("t:-1", "Invalid partition '-1' specified"),
    ],
)
def test_bad_scopes(word: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_topic_scope(word)
    assert said in str(caught.value)


def test_scopes_expand_once() -> None:
    scopes = [TopicScope("t", (1,)), TopicScope("t", None), TopicScope("u", None)]
    assert expand(scopes, lambda topic: [0, 1] if topic == "t" else [5]) == [
        TopicPartition("t", 1),
        TopicPartition("t", 0),
        TopicPartition("u", 5),
    ]
