"""What a poll is summed up to; runs are tested live."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkapy.tools.verifiable_consumer import record_fields, summarised


class Record(NamedTuple):
    """A `confluent_kafka.Message`."""

    place: tuple[str, int, int]

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.place[2]

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"\xffv"


def test_partitions_are_summed_up_apart() -> None:
    records: list[Any] = [Record(place) for place in (("t", 1, 5), ("t", 0, 2), ("t", 1, 7))]
    assert summarised(records) == [
        {"topic": "t", "partition": 1, "count": 2, "minOffset": 5, "maxOffset": 7},
        {"topic": "t", "partition": 0, "count": 1, "minOffset": 2, "maxOffset": 2},
    ]


def test_a_record_that_is_no_text_is_shown_nevertheless() -> None:
    record: Any = Record(("t", 0, 1))
    fields = record_fields(record)
    assert fields == {"key": None, "value": "\ufffdv", "topic": "t", "partition": 0, "offset": 1}
