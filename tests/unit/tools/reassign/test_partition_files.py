"""The JSON files of the partition tools, good and bad."""

from __future__ import annotations

import json

import pytest

from kafkapy.admin.log_dirs import Replica
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.json_input import JsonInputError
from kafkapy.tools.reassign.partition_files import (
    format_reassignment,
    parse_offsets,
    parse_partitions,
    parse_reassignment,
    parse_topics,
    validate_reassignment,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def moves(*rows: dict[str, object]) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": "t", **row} for row in rows]})


def test_topics() -> None:
    assert parse_topics('{"topics":[{"topic":"b"},{"topic":"a"}]}') == ["b", "a"]
    assert parse_topics("{}") == []


def test_a_reassignment_with_and_without_directories() -> None:
    rows = (
        {"partition": 1, "replicas": [2, 3], "log_dirs": ["any", "/d"]},
        {"partition": 0, "replicas": [1]},
    )
    file = parse_reassignment(moves(*rows))
    assert file.rows == [(T1, (2, 3)), (T0, (1,))]
    assert list(file.targets.items()) == [(T0, (1,)), (T1, (2, 3))]
    assert file.log_dirs == {Replica("t", 1, 3): "/d"}
    assert parse_reassignment("{}").rows == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 2}', "Not supported version field value 2"),
        ("nope", "The input string is not a valid JSON (line 1, column 1: Expecting value)"),
        ('{"partitions": {}}', "Expected JSON array, received object {} at partitions"),
        (
            moves({"partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}),
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for"
            " partition t-0",
        ),
        (
            moves({"partition": 0, "replicas": ["1"]}),
            'Expected `Integer` value, received string "1" at partitions[0].replicas[0]',
        ),
    ],
)
def test_a_malformed_reassignment(text: str, said: str) -> None:
    with pytest.raises(JsonInputError) as wrong:
        parse_reassignment(text)
    assert str(wrong.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "Partition reassignment list cannot be empty"),
        (
            moves({"partition": 0, "replicas": [1]}, {"partition": 0, "replicas": []}),
            "Partition replica list cannot be empty",
        ),
        (
            moves(*({"partition": p, "replicas": [1, 1]} for p in (1, 0, 1))),
            "Partition reassignment contains duplicate topic partitions: t-1",
        ),
        (
            moves({"partition": 0, "replicas": [1, 1, 2]}, {"partition": 1, "replicas": [3, 3]}),
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple"
            " entries for 1. t-1 contains multiple entries for 3",
        ),
    ],
)
def test_what_execute_refuses_first(text: str, said: str) -> None:
    with pytest.raises(JsonInputError) as wrong:
        validate_reassignment(parse_reassignment(text))
    assert str(wrong.value) == said


def test_what_is_written_can_be_read() -> None:
    text = format_reassignment({T1: (2, 1), T0: (1,)})
    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"t","partition":1,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    )
    assert parse_reassignment(text).targets == {T0: (1,), T1: (2, 1)}


def test_partitions_of_elections() -> None:
    text = '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":0}]}'
    assert parse_partitions(text, "Data") == [T1, T0]
    for wrong, said in (
        ("x", "Data is empty (line 1"),
        ("{}", 'Data is missing "partitions" field'),
        (
            '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":1}]}',
            "Data contains duplicate partitions: [t-1]",
        ),
    ):
        with pytest.raises(JsonInputError) as refused:
            parse_partitions(wrong, "Data")
        assert str(refused.value).startswith(said)


def test_offsets() -> None:
    assert parse_offsets(moves({"partition": 0, "offset": -1})) == {T0: -1}
    for wrong, said in (
        ("{}", "Missing partitions field"),
        (
            moves({"partition": 0, "offset": 1}, {"partition": 0, "offset": 2}),
            "Offset json file contains duplicate topic partitions: t-0",
        ),
        (
            moves({"partition": 0, "offset": 1 << 63}),
            "Expected `Long` value, received integer 9223372036854775808 at partitions[0].offset",
        ),
        (moves({"partition": 0}), "No such field exists: `offset` at partitions[0]"),
    ):
        with pytest.raises(JsonInputError) as refused:
            parse_offsets(wrong)
        assert str(refused.value) == said
