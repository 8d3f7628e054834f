"""Numbers and dates in Java's text."""

import math
import re

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.java_format import DateFormat, decimal, ratio


@pytest.mark.parametrize(
    ("numerator", "denominator", "text"),
    [(1, 3, "0.33"), (0, 0, "NaN"), (2, 0, "Infinity"), (-2, 0, "-Infinity")],
)
def test_divisions(numerator: float, denominator: float, text: str) -> None:
    assert decimal(ratio(numerator, denominator), 2) == text


def test_only_nan_is_nan() -> None:
    assert math.isnan(ratio(0, 0))


def test_dates() -> None:
    text = DateFormat("yyyy-MM-dd HH:mm:ss:SSS").format(1_704_110_400_007)
    assert re.fullmatch(r"202[34]-\d\d-\d\d \d\d:\d\d:\d\d:007", text)
    assert DateFormat("'at' ss''").format(5_000) == "at 05'"


def test_letters_that_are_not_served_are_named() -> None:
    with pytest.raises(ConfigError, match="The date format 'yyyy EEE' has 'EEE'"):
        DateFormat("yyyy EEE")
