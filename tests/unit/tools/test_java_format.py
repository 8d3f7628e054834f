"""Dates in Java's text."""

import re

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.java_format import DateFormat


def test_dates() -> None:
    text = DateFormat("yyyy-MM-dd HH:mm:ss:SSS").format(1_704_110_400_007)
    assert re.fullmatch(r"202[34]-\d\d-\d\d \d\d:\d\d:\d\d:007", text)
    assert DateFormat("'at' ss''").format(5_000) == "at 05'"


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [(10**15, "33658-09 58"), (2**63 - 1, "292278994-08 94"), (-(10**9), "1969-12 69")],
)
def test_dates_of_tokens_that_never_expire(epoch_ms: int, text: str) -> None:
    assert DateFormat("yyyy-MM yy").format(epoch_ms) == text


def test_letters_that_are_not_served_are_named() -> None:
    with pytest.raises(ConfigError, match="The date format 'yyyy EEE' has 'EEE'"):
        DateFormat("yyyy EEE")
