"""Series of clients: deltas add up, memory is bounded, and a series ends with its client."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.common.uuid import Uuid
from kafkapy.metadata import client_series
from kafkapy.metadata.client_series import ClientSeries
from kafkapy.metadata.otlp import Histogram, Point

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def point(name: str, value: float | Histogram, kind: str = "gauge", who: str = "a") -> Point:
    return Point(name, kind, f'c="{who}"', value, kind != "gauge")


def samples(series: ClientSeries) -> dict[str, float]:
    text = "".join(series.text())
    return {
        f"{sample.name}{''.join(sample.labels.values())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_deltas_are_added_up_and_gauges_replaced() -> None:
    series = ClientSeries()
    for value in (3, 4):
        series.push(A, [point("n_total", value, "counter"), point("g", value)])
    series.push(A, [Point("n_total", "counter", 'c="a"', 100, False)])
    assert samples(series) == {"n_totala": 100, "ga": 4}
    series.push(A, [point("n_total", 1, "counter")])
    assert samples(series)["n_totala"] == 101


def test_histograms_add_up_while_their_bounds_are_the_same() -> None:
    series = ClientSeries()
    for _ in range(2):
        series.push(A, [point("h", Histogram((1.0,), (1, 3), 5.0), "histogram")])
    expected = {"h_bucketa1.0": 2, "h_bucketa+Inf": 6, "h_suma": 10, "h_counta": 6}
    assert samples(series) == expected
    series.push(A, [point("h", Histogram((2.0,), (0, 1), 1.0), "histogram")])
    assert samples(series)["h_bucketa+Inf"] == 1


def test_series_of_a_name_stand_together_whoever_pushed_them() -> None:
    series = ClientSeries()
    series.push(A, [point("x", 1), point("y", 1)])
    series.push(B, [point("x", 2, who="b")])
    assert "".join(series.text()) == (
        '# TYPE x gauge\nx{c="a"} 1\nx{c="b"} 2\n# TYPE y gauge\ny{c="a"} 1\n'
    )


def test_clients_that_differ_about_a_kind_leave_it_open() -> None:
    series = ClientSeries()
    series.push(A, [point("x", 1)])
    series.push(B, [point("x", 2, "counter", who="b")])
    assert "".join(series.text()).startswith("# TYPE x untyped\n")
    assert samples(series) == {"xa": 1, "xb": 2}


def test_a_series_that_is_pushed_no_more_ends() -> None:
    series = ClientSeries()
    series.push(A, [point("x", 1), point("y", 1)])
    for pushes in range(3):
        assert ("xa" in samples(series)) is True, pushes
        series.push(A, [point("y", 1)])
    assert samples(series) == {"ya": 1}


def test_the_series_of_a_client_end_with_it() -> None:
    series = ClientSeries()
    series.push(A, [point("x", 1)])
    series.push(B, [point("x", 2, who="b")])
    series.retain_clients({B})
    assert samples(series) == {"xb": 2}
    series.retain_clients(())
    assert (samples(series), series.size_bytes, list(series.clients)) == ({}, 0, [])


@pytest.mark.parametrize(("limit", "left"), [("CLIENT_BYTES_MAX", 3), ("BYTES_MAX", 2)])
def test_what_does_not_fit_is_dropped(
    monkeypatch: pytest.MonkeyPatch, limit: str, left: int
) -> None:
    room = client_series.SERIES_BYTES + len("g1") + len('c="a"')
    monkeypatch.setattr(client_series, limit, 2 * room)
    series = ClientSeries()
    series.push(A, [point(f"g{n}", n) for n in range(5)])
    assert len(samples(series)) == 2
    series.push(B, [point("g1", 1, who="b")])
    assert len(samples(series)) == left
    assert series.dropped == 3 + (3 - left)
    series.retain_clients({B})
    series.push(B, [point("g2", 1, who="b")])
    assert "g2b" in samples(series), "room is free again"


def test_a_series_that_grows_takes_room_as_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may push more buckets, or other kinds, under the same name at any time."""
    small, large = Histogram((), (1,), 1.0), Histogram((1.0, 2.0), (0, 1, 3), 9.0)
    series = ClientSeries()
    series.push(A, [point("h", small, "histogram")])
    without = series.size_bytes
    series.push(A, [point("h", large, "histogram")])
    grown = series.size_bytes
    assert grown == without + 2 * client_series._BUCKET_BYTES
    monkeypatch.setattr(client_series, "CLIENT_BYTES_MAX", grown)
    largest = Histogram((1.0, 2.0, 3.0), (0, 1, 3, 3), 9.0)
    series.push(A, [point("h", largest, "histogram")])
    assert (series.size_bytes, series.dropped) == (grown, 1)
    assert samples(series)["h_counta"] == 3, "what was there stays"
    series.push(A, [point("h", small, "histogram")])
    assert series.size_bytes == without
    series.retain_clients(())
    assert series.size_bytes == 0


def test_a_large_family_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_series, "_LINES_AT_ONCE", 2)
    series = ClientSeries()
    series.push(A, [Point("x", "gauge", f'n="{n}"', n, False) for n in range(5)])
    pieces = list(series.text())
    assert [piece.count("\n") for piece in pieces] == [1, 2, 2, 1]
