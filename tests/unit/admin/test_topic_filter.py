"""`--topic` as Kafka's tools read it."""

import warnings

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


@pytest.mark.parametrize("text", ["app-[a-z&&[^p]]+", "a[b[cd]]", "[[ab]]", "[^a-z&&b]"])
def test_sets_of_sets_which_python_reads_otherwise_are_refused(text: str) -> None:
    """`--delete` would take topics that Java's expression does not match."""
    with pytest.raises(ConfigError, match="is not served"):
        TopicFilter(text)


@pytest.mark.parametrize("text", ["fo[o||~~x]", "(?<first>f)oo", r"(?!a)[^\W_]+(?<!r)"])
def test_expressions_of_java_are_read_without_a_warning(text: str) -> None:
    """Python warned about `||` on stderr, with the path of the module."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TopicFilter(text).choose(NAMES) == ["foo"]


def test_brackets_and_ampersands_elsewhere_are_read_as_in_java() -> None:
    assert TopicFilter(r"fo[o\[&]&*|[a]\[?\.[b]").choose(NAMES) == ["a.b", "foo"]
