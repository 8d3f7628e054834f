"""A listener's own properties win, and messages name the key that was written."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener


def test_the_listeners_own_value_wins_and_is_named() -> None:
    given = {"a": "1", "b": "2", "listener.name.secure.a": "3"}
    found = of_listener(given, "SECURE")
    assert [found.get(name) for name in "abc"] == ["3", "2", None]
    assert [found.key(name) for name in "abc"] == ["listener.name.secure.a", "b", "c"]
    assert (found.text("c"), found.text("c", "4")) == ("", "4")


def test_a_nearer_prefix_wins() -> None:
    given = {"x.a": "1", "x.y.a": "2", "x.b": "3"}
    found = PrefixedProperties(given, ("x.",)).with_prefixes("x.y.")
    assert [found.get(name) for name in "ab"] == ["2", "3"]


def test_where_a_value_is_wanted() -> None:
    given = {"x.a": "1", "b": "2", "c": ""}
    found = PrefixedProperties(given, ("x.y.", "x."))
    assert [found.key_to_set(name) for name in "abcd"] == ["x.a", "b", "x.y.c", "x.y.d"]
    assert PrefixedProperties({}).key_to_set("a") == "a"


def test_lists() -> None:
    found = PrefixedProperties({"l": " a, b,,c "})
    assert found.items("l") == ["a", "b", "c"]
    assert found.items("other", "d,e") == ["d", "e"]


def test_numbers() -> None:
    properties = of_listener({"listener.name.x.n": " 7 ", "m": "-1"}, "X")
    assert (properties.number("n", 1), properties.number("o", 1)) == (7, 1)
    with pytest.raises(ConfigError, match=r"m=-1 is not a number"):
        properties.number("m", 1)
