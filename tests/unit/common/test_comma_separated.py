"""comma_separated: what counts as an item."""

from __future__ import annotations

from kafkapy.common.comma_separated import comma_separated, java_split


def test_spaces_and_empty_items_do_not_count() -> None:
    assert comma_separated(" a, b c,,a , ") == ["a", "b c", "a"]
    assert comma_separated("") == []


def test_java_drops_empty_items_at_the_end() -> None:
    texts = ("a", "a,b", "a, b,,", ",a", ",,", "")
    split = [["a"], ["a", "b"], ["a", " b"], ["", "a"], [], [""]]
    assert [java_split(text) for text in texts] == split
