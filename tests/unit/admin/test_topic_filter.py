"""`--topic` as Kafka's tools read it."""

import pytest

from kafkapy.admin.topic_filter import TopicFilter
from kafkapy.common.errors import ConfigError

NAMES = ["foo", "foobar", "a.b", "aXb", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, sorted(NAMES)),
        ("", []),
        (" ", []),
        ("foo", ["foo"]),
        ("foo.*", ["foo", "foobar"]),
        ("a.b", ["a.b", "aXb"]),
        (r"a\.b", ["a.b"]),
        ("foo,a.b", ["a.b", "aXb", "foo"]),
        (" 'foo' ", ["foo"]),
        ("f o o", ["foo"]),
        ("fo", []),
    ],
)
def test_whole_names_match(text: str | None, expected: list[str]) -> None:
    assert TopicFilter(text).choose(NAMES) == expected


def test_internal_topics_can_be_left_out() -> None:
    assert "__consumer_offsets" not in TopicFilter(None, exclude_internal=True).choose(NAMES)


def test_what_is_no_expression_is_named() -> None:
    for wrong in ("a(", "a{99999999999}", "(" * 9999):
        with pytest.raises(ConfigError) as caught:
            TopicFilter(wrong)
        assert str(caught.value) == f"{wrong} is an invalid regex."
