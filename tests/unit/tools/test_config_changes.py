"""The grammar of `--add-config` and `--delete-config`."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.config_changes import (
    ConfigChange,
    parse_add_config,
    parse_delete_config,
    validate_keys,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=", {"a": ""}),
        (" a = 1 , b = 2 ", {"a": "1", "b": "2"}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        ("a=[x=y],b=[]", {"a": "x=y", "b": ""}),
        ("a=x[1]y", {"a": "x1y"}),
        ("a=1,a=2", {"a": "2"}),
        # Java's `split` drops empty texts at the end, so a script may join with commas.
        ("a=1,", {"a": "1"}),
        ("a=[1,2],,", {"a": "1,2"}),
    ],
)
def test_values(text: str, expected: dict[str, str]) -> None:
    assert parse_add_config(text) == expected


@pytest.mark.parametrize("text", ["a", "a=b=c", ",a=1", "a=1,,b=2", "a=1, ", "", "a=1,b"])
def test_what_is_not_key_value(text: str) -> None:
    with pytest.raises(ConfigError, match='must be in the format "key=val"'):
        parse_add_config(text)


def test_keys_have_few_characters() -> None:
    validate_keys({"a.B-1_c": ""})
    with pytest.raises(ConfigError, match="Invalid character found for config key: a b"):
        parse_add_config("a b=1")


def test_deletes() -> None:
    assert parse_delete_config(["a, b", "c,", "d,,e"]) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(("word", "key"), [("", ""), (" ", ""), (",", ",")])
def test_a_word_without_a_key_is_not_nothing(word: str, key: str) -> None:
    """With an unset variable of a shell, nothing was deleted, and success was reported."""
    assert parse_delete_config([word]) == [key]


def test_deletes_must_be_there() -> None:
    change = ConfigChange({"x": "1"}, ["a", "b", "c"])
    change.refuse_unknown_deletes({"a", "b", "c"})
    with pytest.raises(ConfigError, match=r"Invalid config\(s\): a,c"):
        change.refuse_unknown_deletes({"b"})
