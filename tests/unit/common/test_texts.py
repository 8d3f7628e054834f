"""Texts that can be encoded."""

import pytest

from kafkapy.common.texts import is_utf8


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", True), ("größe 日本 😀", True), ("a\udcff", False), ("\ud800", False)],
)
def test_lone_surrogates_are_not_utf_8(text: str, expected: bool) -> None:
    assert is_utf8(text) is expected
