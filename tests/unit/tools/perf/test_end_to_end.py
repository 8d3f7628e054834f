"""The summary of e2e-latency; a run is tested live."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.perf.end_to_end import check_read, summary


def test_the_summary() -> None:
    found = summary([n * 1_000_000 + 900_000 for n in range(1, 101)])
    assert found.lines() == [
        "Avg latency: 51.4000 ms",
        "Percentiles: 50th = 51, 99th = 100, 99.9th = 100",
    ]
    assert summary([]).lines() == [
        "Avg latency: NaN ms",
        "Percentiles: 50th = 0, 99th = 0, 99.9th = 0",
    ]


def test_another_message_than_ours_is_told() -> None:
    check_read(b"AA", b"AA")
    with pytest.raises(
        ConfigError, match=r"The message read \[BB\] did not match the message sent"
    ):
        check_read(b"AA", b"BB")
