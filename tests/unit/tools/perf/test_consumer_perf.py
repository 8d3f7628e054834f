"""The rows of consumer-perf; runs are tested live."""

from kafkapy.tools.java_format import DateFormat
from kafkapy.tools.perf.consumer_perf import DETAILED_HEADER, HEADER, Span

SECONDS = DateFormat("ss")


def test_a_row_has_a_cell_for_each_column() -> None:
    span = Span(1000, 3000, 4 * 1024 * 1024, 2 * 1024 * 1024, 400, 200, 1000)
    assert span.line(SECONDS) == (
        "01, 03, 4.0000, 1.0000, 400, 100.0000, 1000, 1000, 2.0000, 200.0000"
    )
    assert span.detailed_line(SECONDS).startswith("03, 0, 4.0000, 1.0000, 400, ")
    assert len(span.line(SECONDS).split(", ")) == len(HEADER.split(", "))
    assert len(span.detailed_line(SECONDS).split(", ")) == len(DETAILED_HEADER.split(", "))


def test_no_time_at_all_is_no_fault() -> None:
    assert Span(0, 0, 0, 0, 0, 0, 0).line(SECONDS).endswith("0.0000, NaN, 0, NaN, 0, 0, NaN, NaN")
