"""comma_separated: what counts as an item."""

from __future__ import annotations

from kafkapy.common.comma_separated import comma_separated


def test_spaces_and_empty_items_do_not_count() -> None:
    assert comma_separated(" a, b c,,a , ") == ["a", "b c", "a"]
    assert comma_separated("") == []
