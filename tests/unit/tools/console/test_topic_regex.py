"""Java's regular expressions of topics in POSIX's words."""

from __future__ import annotations

import pytest

from kafkapy.tools.console.topic_regex import posix_regex


@pytest.mark.parametrize(
    ("java", "posix"),
    [
        (r"t-\d+", "t-[0-9]+"),
        (r"t\D", "t[^0-9]"),
        (r"t[\d.]", "t[0-9.]"),
        (r"[\w\-\.]+", "[A-Za-z0-9_.-]+"),
        (r"[^\d]", "[^0-9]"),
        (r"(?:a|b)\.c", r"(a|b)\.c"),
        (r"\\d\[\d", r"\\d\[[0-9]"),
        ("a|b.*", "a|b.*"),
        ("", ""),
    ],
)
def test_what_posix_does_not_have(java: str, posix: str) -> None:
    assert posix_regex(java) == posix
