"""offsets: JSON, losses, rate limits and splits, as tables."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offsets import (
    START_KEY,
    DataLossError,
    OffsetRange,
    end_offset,
    existing_part,
    from_json_object,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    plan_ranges,
    rate_limit,
    report_losses,
    split_ranges,
    start_of,
    to_json_object,
)

A, B, C = TopicPartition("a", 0), TopicPartition("a", 10), TopicPartition("b", 0)

offsets_of = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b-c", "_from"]), st.integers(0, 20)),
    st.integers(0, 2**62),
)


@given(offsets_of)
def test_offsets_survive_json(offsets: dict[TopicPartition, int]) -> None:
    assert from_json_object(json.loads(json.dumps(to_json_object(offsets)))) == offsets


def test_json_does_not_depend_on_the_order() -> None:
    assert (
        json.dumps(to_json_object({C: 3, B: 2, A: 1})) == '{"a": {"0": 1, "10": 2}, "b": {"0": 3}}'
    )


def test_an_end_remembers_its_start() -> None:
    end = end_offset({A: 100}, {A: 110})
    assert from_json_object(end) == {A: 110}
    assert start_of(to_json_object({A: 110}), end) == {A: 100}
    assert start_of(to_json_object({A: 5}), to_json_object({A: 9})) == {A: 5}


def test_no_topic_can_be_named_as_the_start_key() -> None:
    from kafkapy.common.errors import ApiError
    from kafkapy.common.topic_partition import validate_topic_name

    with pytest.raises(ApiError):
        validate_topic_name(START_KEY)


def test_json_of_users() -> None:
    assert parse_offsets('{"a":{"0":23,"10":-1},"b":{"0":-2}}') == {A: 23, B: -1, C: -2}
    assert parse_timestamps('{"a": {"0": 1700000000000}}') == {A: 1_700_000_000_000}
    assert parse_partitions('{"a":[0,10],"b":[0]}') == [A, B, C]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "1", '{"a":1}', '{"a":{"x":1}}', '{"a":{"0":"1"}}', '{"a":{"0":true}}'),
        pytest.param("[" * 5000, id="nested too deeply"),
    ],
)
def test_json_that_does_not_fit_is_shown_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"Expected e\.g\. .*topicB.*, got "):
        parse_offsets(text)
    with pytest.raises(ConfigError, match=r"Expected e\.g\. "):
        parse_partitions(text)


def test_a_plain_plan() -> None:
    ranges, losses = plan_ranges(
        {A: 1, B: 5}, {A: 4, B: 5, C: 2}, {A: 0, B: 0, C: 0}, {A: 9, B: 9, C: 9}
    )
    assert ranges == [OffsetRange(A, 1, 4), OffsetRange(C, 0, 2)]
    assert losses == []


@pytest.mark.parametrize(
    ("start", "end", "there", "ranges", "words"),
    [
        ({A: 3, B: 4}, {B: 4}, {B: (0, 4)}, [], ["a-0", "gone", "3"]),
        ({A: 3}, {A: 8}, {}, [], ["a-0", "gone", "3 to 8"]),
        ({}, {A: 8}, {A: (5, 8)}, [(A, 5, 8)], ["new partition a-0", "5"]),
        ({A: 9}, {A: 4}, {A: (0, 4)}, [], ["a-0", "4", "9"]),
        ({A: 3}, {A: 8}, {A: (5, 9)}, [(A, 5, 8)], ["a-0", "5 to 9", "3 to 8"]),
        ({A: 3}, {A: 8}, {A: (9, 9)}, [], ["a-0", "9 to 9", "3 to 8"]),
        ({A: 3}, {A: 8}, {A: (0, 6)}, [(A, 3, 6)], ["a-0", "0 to 6", "3 to 8"]),
    ],
)
def test_losses_name_partition_and_offsets(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    there: dict[TopicPartition, tuple[int, int]],
    ranges: list[tuple[TopicPartition, int, int]],
    words: list[str],
) -> None:
    earliest = {tp: low for tp, (low, _) in there.items()}
    latest = {tp: high for tp, (_, high) in there.items()}
    planned, losses = plan_ranges(start, end, earliest, latest)
    left = [existing_part(each, earliest, latest) for each in planned]
    assert [each for each in left if each.size] == [OffsetRange(*r) for r in ranges]
    (loss,) = losses
    assert all(word in loss for word in words), loss


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ((0, 9), (3, 8)),
        ((5, 9), (5, 8)),
        ((0, 6), (3, 6)),
        ((9, 12), (8, 8)),
        ((0, 2), (3, 3)),
        (None, (8, 8)),
    ],
)
def test_what_is_left_of_a_range(there: tuple[int, int] | None, left: tuple[int, int]) -> None:
    earliest, latest = ({A: there[0]}, {A: there[1]}) if there else ({}, {})
    assert existing_part(OffsetRange(A, 3, 8), earliest, latest) == OffsetRange(A, *left)


def test_nothing_to_read_is_never_a_loss() -> None:
    assert plan_ranges({A: 3}, {A: 3}, {A: 5}, {A: 5}) == ([], [])


def test_losses_fail_or_warn() -> None:
    warnings: list[str] = []
    report_losses([], True, warnings.append)
    with pytest.raises(DataLossError, match=r"one; two.*failOnDataLoss"):
        report_losses(["one", "two"], True, warnings.append)
    assert warnings == []
    report_losses(["one", "two"], False, warnings.append)
    assert [text[:3] for text in warnings] == ["one", "two"]


def test_a_limit_is_spread_in_proportion_to_lag() -> None:
    start, latest = {A: 0, B: 100}, {A: 900, B: 200, C: 1000}
    assert rate_limit(200, start, latest, {C: 0}) == {A: 90, B: 110, C: 100}


def test_small_partitions_do_not_starve_and_none_passes_its_end() -> None:
    assert rate_limit(10, {A: 0, B: 0}, {A: 10_000, B: 1}, {}) == {A: 9, B: 1}
    assert rate_limit(10**18, {A: 5}, {A: 7}, {}) == {A: 7}
    assert rate_limit(5, {A: 7}, {A: 7, B: 0}, {B: 0}) == {A: 7, B: 0}


def test_new_partitions_begin_where_their_log_does() -> None:
    assert rate_limit(10, {}, {A: 1000}, {A: 900}) == {A: 910}


ranges_of = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1, max_size=6
).map(
    lambda sizes: [OffsetRange(TopicPartition("t", i), a, a + n) for i, (a, n) in enumerate(sizes)]
)


@given(ranges_of, st.none() | st.integers(1, 40), st.none() | st.integers(1000, 10**6))
def test_splits_cover_every_offset_once(
    ranges: list[OffsetRange], tasks: int | None, records: int | None
) -> None:
    parts = split_ranges(ranges, tasks, records)
    for whole in ranges:
        mine = sorted(p for p in parts if p.topic_partition == whole.topic_partition)
        assert mine[0].start == whole.start
        assert mine[-1].end == whole.end
        assert all(a.end == b.start for a, b in pairwise(mine))
        assert all(p.size > 0 for p in mine)
    assert records is None or all(p.size <= records for p in parts)


def test_min_partitions_cuts_the_large_ones() -> None:
    ranges = [OffsetRange(A, 0, 1000), OffsetRange(B, 0, 10)]
    sizes = [(p.topic_partition, p.size) for p in split_ranges(ranges, 5, None)]
    assert sizes == [(A, 250)] * 4 + [(B, 10)]
    assert split_ranges(ranges, 2, None) == ranges


def test_there_are_no_more_tasks_than_offsets() -> None:
    ranges = [OffsetRange(A, 0, 3), OffsetRange(B, 5, 6)]
    parts = split_ranges(ranges, 2**63 - 1, None)
    assert [(p.topic_partition, p.start, p.end) for p in parts] == [
        *((A, i, i + 1) for i in range(3)),
        (B, 5, 6),
    ]


def test_max_records_bounds_each_task() -> None:
    sizes = [p.size for p in split_ranges([OffsetRange(A, 0, 10)], None, 4)]
    assert sizes == [3, 3, 4]
