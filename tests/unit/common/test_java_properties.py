"""Property files: what `java.util.Properties` reads, we read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2\nc", {"a": "1", "b": "2", "c": ""}),
        ("# no\n! no\n\n  a=1", {"a": "1"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        ("a\\ b\\=c=1", {"a b=c": "1"}),
        ("list=one,\\\n   two,\\\r\n\tthree", {"list": "one,two,three"}),
        ("path=C:\\\\dir\\\\", {"path": "C:\\dir\\"}),
        ("sep=\\t\nname=\\u00e9\nodd=\\q", {"sep": "\t", "name": "é", "odd": "q"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("=value", {"": "value"}),
        ("a==b", {"a": "=b"}),
    ],
)
def test_syntax(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_unicode_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_properties("a=1\nb=\\u12")


TEXT = st.text(st.characters(max_codepoint=0xD7FF))


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_what_is_written_is_read(properties: dict[str, str]) -> None:
    text = format_properties(properties)
    assert text.isascii()
    assert parse_properties(text) == properties


@pytest.mark.parametrize(
    "value",
    [
        "plain words",
        "C:\\dir\\",
        " blank",
        "späte Brötchen",
        "面包",
        "\U0001f956",
        "a\nb\tc",
        "\udcff",
    ],
)
def test_what_is_written_is_read_the_same(value: str) -> None:
    text = format_properties({"a.b": value, "c": "1"})
    assert parse_properties(text) == {"a.b": value, "c": "1"}
    assert text.isascii()


def test_characters_are_written_as_java_reads_them() -> None:
    assert format_properties({"a": "ä\U0001f956\\"}) == "a=\\u00e4\\ud83e\\udd56\\\\\n"
