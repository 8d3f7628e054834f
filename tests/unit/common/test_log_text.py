"""Text of clients stays on one line of the log."""

from __future__ import annotations

import pytest

from kafkapy.common.log_text import on_one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("größe 1,5 µs", "größe 1,5 µs"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2K\x00", r"\x1b[2K\x00"),
        ("\x85\u2028\u202e\ud800", r"\x85\u2028\u202e\ud800"),
    ],
)
def test_characters_that_do_not_print_are_escaped(text: str, line: str) -> None:
    assert on_one_line(text) == line
