"""Java's patterns and replacements: `replaceAll` gives the same in both."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.java_patterns import java_pattern, java_replacement


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("(a)(b)", "$2$1", "ab", "ba"),
        ("(a)", "$12", "a", "a2"),  # there is no group 12
        ("(?<n>a)", "<${n}>", "a", "<a>"),
        ("a", r"\$1\\", "a", "$1\\"),
        ("(a)|b", "[$1]", "ab", "[a][]"),
    ],
)
def test_what_replaces_a_match(pattern: str, replacement: str, text: str, expected: str) -> None:
    compiled = java_pattern(pattern, "rules")
    assert compiled.sub(java_replacement(replacement, compiled, "rules"), text) == expected


@pytest.mark.parametrize("replacement", ["$1", "${n}", "$", "a\\"])
def test_a_replacement_that_java_would_refuse(replacement: str) -> None:
    with pytest.raises(ConfigError, match=r"^rules: "):
        java_replacement(replacement, java_pattern("a", "rules"), "rules")


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"^rules: \( is not a pattern: "):
        java_pattern("(", "rules")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?i)kafka", "\u212aafka"),  # the sign of Kelvin, a small k in Unicode
        ("(?i)ssl", "\u017fsl"),
        (r"\d+", "\u0661"),
        (r"\w+", "\xe9"),
    ],
)
def test_classes_and_cases_are_of_ascii(pattern: str, text: str) -> None:
    """Otherwise a letter like another one makes a user of another one."""
    assert java_pattern(pattern, "rules").fullmatch(text) is None


@pytest.mark.parametrize("pattern", ["(?u)a", "a{99999999999}"])
def test_a_pattern_that_only_java_reads_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"^rules: .* is not a pattern: "):
        java_pattern(pattern, "rules")
