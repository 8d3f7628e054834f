"""Topic names are held to Kafka's rules; a group lies in the partition that Kafka puts it in."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import (
    TopicPartition,
    java_string_hash,
    names_collide,
    partition_for_key,
    validate_topic_name,
)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "__consumer_offsets", "x" * 249])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        *(
            (
                name,
                f"'{name}' contains one or more characters other than ASCII alphanumerics,"
                " '.', '_' and '-'",
            )
            for name in ("a b", "a/b", "é", "a\n", "٣")
        ),
    ],
)
def test_illegal_names_are_refused_in_kafkas_words(name: str, problem: str) -> None:
    with pytest.raises(ApiError) as refused:
        validate_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.value.message == f"Topic name is invalid: {problem}"


@pytest.mark.parametrize(
    ("a", "b", "collide"),
    [("a.b", "a_b", True), ("a.b", "a.b", True), ("a.b", "a-b", False), ("ab", "a.b", False)],
)
def test_names_that_give_one_metric_collide(a: str, b: str, collide: bool) -> None:
    assert names_collide(a, b) == collide


def test_a_partition_is_written_as_its_directory_is_named() -> None:
    assert str(TopicPartition("my-topic", 3)) == "my-topic-3"


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("Hello, World!", 1498789909),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 55357 * 31 + 56832),
    ],
)
def test_java_string_hash(text: str, hashed: int) -> None:
    assert java_string_hash(text) == hashed


def test_a_key_lies_in_the_partition_of_its_absolute_hash() -> None:
    assert java_string_hash("Hello World") == -862545276
    assert partition_for_key("Hello World", 50) == 26
    assert partition_for_key("hello", 50) == 22
    assert partition_for_key("polygenelubricants", 50) == 0
