"""Times of resets, as java.text and java.time read them."""

import re

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.groups.reset_times import parse_datetime, parse_duration

NEW_YEAR_MS = 1_704_067_200_000


@pytest.mark.parametrize(
    ("text", "offset_ms"),
    [
        ("2024-01-01T00:00:00.000", 0),
        ("2024-01-01T00:00:00.123Z", 123),
        ("2024-01-01T01:00:00.000+01", 0),
        ("2024-01-01T01:30:00.000+0130", 0),
        ("2023-12-31T19:00:00.000-05:00", 0),
    ],
)
def test_datetimes(text: str, offset_ms: int) -> None:
    assert parse_datetime(text) == NEW_YEAR_MS + offset_ms


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2024-01-01", "2024-01-01T00:00:00", "2024-13-01T00:00:00.000",
     "2024-02-30T00:00:00.000", "2024-01-01T00:00:00.000+99:00", "2024-01-01 00:00:00.000"],
)  # fmt: skip
def test_bad_datetimes(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"Invalid datetime '{text}'")):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("pt1.5s", 1_500),
        ("P1DT-1H", 82_800_000),
        ("-PT1H", -3_600_000),
        ("PT0,001S", 1),
    ],
)
def test_durations(text: str, expected_ms: int) -> None:
    assert parse_duration(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "1h", "P1DT", "P1Y", "P1M", "PT1.5H", "P1W", "P9999999999D"]
)
def test_bad_durations(text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid duration '{text}'"):
        parse_duration(text)
