"""The summary of e2e-latency; a run is tested live."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.tools.perf.end_to_end import EndToEnd, check_read, summary


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


def test_what_librdkafka_refuses_is_told() -> None:
    class Refusing:
        def get_watermark_offsets(self, place: Any, timeout: float) -> None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

        def produce(self, topic: str, payload: bytes, on_delivery: Any) -> None:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))

    client: Any = Refusing()
    test = EndToEnd(client, client, "t")
    with pytest.raises(ApiError, match=r"The end of t-0 is not known: .*Timed out"):
        test.seek_to_ends([0])
    with pytest.raises(ApiError, match="Message size too large"):
        test.run(1, 5_000_000, print, print)
