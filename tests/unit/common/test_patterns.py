"""Regular expressions that users give."""

import re

import pytest

from kafkapy.common.patterns import PATTERN_ERRORS, InvalidPattern, compile_linear


@pytest.mark.parametrize("text", ["(", "a{99999999999}", "(" * 5000 + ")" * 5000])
def test_every_refusal_is_known(text: str) -> None:
    with pytest.raises(PATTERN_ERRORS):
        re.compile(text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(", "missing )"), ("a(?=b)", "invalid perl operator"), (r"\pL{999}", "pattern too large")],
)
def test_a_pattern_that_needs_more_than_linear_time_or_memory_is_refused(
    pattern: str, reason: str
) -> None:
    with pytest.raises(InvalidPattern, match=reason.replace(")", r"\)")):
        compile_linear(pattern, 1 << 16)


def test_a_linear_pattern_matches_and_captures_nothing() -> None:
    match = compile_linear("(a+)+b?", 1 << 20).fullmatch("a" * 30)
    assert match is not None
    assert match.groups() == ()
