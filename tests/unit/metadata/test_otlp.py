"""OTLP as data points: Prometheus' names and labels, and nothing that a client can make large."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
    Summary,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Histogram as OtlpHistogram
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.common.uuid import Uuid
from kafkapy.metadata import otlp
from kafkapy.metadata.client_series import ClientSeries
from kafkapy.metadata.otlp import Histogram, Point, PushedPoints, metric_name, read_points

CLIENT = {"client_id": 'a"b\\c\n'}
CLIENT_TEXT = 'client_id="a\\"b\\\\c\\n"'


def attribute(key: str, **value: Any) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def data(*metrics: Metric, resource: tuple[KeyValue, ...] = ()) -> bytes:
    scopes = [ScopeMetrics(metrics=metrics)]
    rows = [ResourceMetrics(resource=Resource(attributes=resource), scope_metrics=scopes)]
    return MetricsData(resource_metrics=rows).SerializeToString()


def gauge(name: str, *points: NumberDataPoint) -> Metric:
    return Metric(name=name, gauge=Gauge(data_points=points))


def counter(name: str, value: int, temporality: int = 1, is_monotonic: bool = True) -> Metric:
    points = [NumberDataPoint(as_int=value)]
    form = Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=is_monotonic)
    return Metric(name=name, sum=form)


@pytest.mark.parametrize(
    ("name", "unit", "kind", "expected"),
    [
        ("org.apache.kafka.producer.record.send.total", "", "counter",
         "org_apache_kafka_producer_record_send_total"),
        ("requests", "", "counter", "requests_total"),
        ("total.requests", "1", "counter", "requests_total"),
        ("fetch.latency", "ms", "gauge", "fetch_latency_milliseconds"),
        ("fetch.latency.milliseconds", "ms", "gauge", "fetch_latency_milliseconds"),
        ("rate", "By/s", "gauge", "rate_bytes_per_second"),
        ("load", "1", "gauge", "load_ratio"),
        ("things", "{things}", "gauge", "things"),
        ("9 lives!", "", "gauge", "_9_lives"),
        ("..", "", "gauge", ""),
    ],
)  # fmt: skip
def test_names_are_those_that_prometheus_gives(
    name: str, unit: str, kind: str, expected: str
) -> None:
    assert metric_name(name, unit, kind) == expected


def test_sums_gauges_and_histograms() -> None:
    point = HistogramDataPoint(explicit_bounds=[1, 2.5], bucket_counts=[1, 0, 2], sum=9.5, count=3)
    histogram = OtlpHistogram(data_points=[point], aggregation_temporality=2)
    pushed = read_points(
        data(
            counter("c", 7),
            counter("cumulative", 8, temporality=2),
            counter("up.down", 9, is_monotonic=False),
            gauge(
                "g", NumberDataPoint(as_double=0.5, attributes=[attribute("node.id", int_value=1)])
            ),
            Metric(name="h", histogram=histogram),
            resource=(attribute("group_id", string_value="readers"),),
        ),
        CLIENT,
    )
    group = f'{CLIENT_TEXT},group_id="readers"'
    assert pushed == PushedPoints(
        [
            Point("c_total", "counter", group, 7.0, True),
            Point("cumulative_total", "counter", group, 8.0, False),
            Point("up_down", "gauge", group, 9.0, True),
            Point("g", "gauge", f'{group},node_id="1"', 0.5, False),
            Point("h", "histogram", group, Histogram((1.0, 2.5), (1, 1, 3), 9.5), False),
        ],
        0,
    )


def test_a_client_cannot_take_the_labels_of_another() -> None:
    forged = attribute("client_id", string_value="someone else")
    (point,), _ = read_points(data(gauge("g", NumberDataPoint(attributes=[forged]))), CLIENT)
    assert point.labels == CLIENT_TEXT


def test_values_and_names_of_labels() -> None:
    point = NumberDataPoint(
        as_int=1,
        attributes=[
            attribute("a-b", bool_value=True),
            attribute("1", double_value=0.5),
            attribute("bytes", bytes_value=b"x"),
            attribute("none", string_value=""),
        ],
    )
    (read,), _ = read_points(data(gauge("g", point)), {})
    assert read.labels == 'a_b="true",key_1="0.5"'


def test_labels_that_the_text_has_of_its_own() -> None:
    """Prometheus takes nothing at all of a page on which a sample has a label twice."""
    own = [attribute(key, string_value="x") for key in ("le", "__name__")]
    bounded = HistogramDataPoint(explicit_bounds=[1], bucket_counts=[1, 0], attributes=own)
    series = ClientSeries()
    for metric in (
        Metric(name="h", histogram=OtlpHistogram(data_points=[bounded])),
        gauge("g", NumberDataPoint(as_int=1, attributes=own)),
    ):
        series.push(Uuid(b"a" * 16), read_points(data(metric), {}).points)
    found = list(text_string_to_metric_families("".join(series.text())))
    assert [family.name for family in found] == ["h", "g"]
    renamed = {"key_le": "x", "key___name__": "x"}
    assert [sample.labels for sample in found[0].samples] == [
        {**renamed, "le": "1.0"},
        {**renamed, "le": "+Inf"},
        renamed,
        renamed,
    ]
    assert [sample.labels for sample in found[1].samples] == [renamed]


def test_what_is_dropped() -> None:
    bad = HistogramDataPoint(explicit_bounds=[1], bucket_counts=[1])
    pushed = read_points(
        data(
            Metric(name="summary", summary=Summary()),
            gauge("kafka_server_x", NumberDataPoint()),
            gauge("kafka.server.y", NumberDataPoint()),
            gauge("g" * 251, NumberDataPoint()),
            Metric(name="h", histogram=OtlpHistogram(data_points=[bad])),
            Metric(name="nothing"),
        ),
        {},
    )
    assert pushed == PushedPoints([], 6)


def test_points_and_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "ELEMENTS_MAX", 5)
    many = [attribute(f"k{n}", string_value="v" * 300) for n in range(100)]
    points = [NumberDataPoint(attributes=many) for _ in range(4)]
    pushed = read_points(data(gauge("g", *points)), {})
    assert (len(pushed.points), pushed.dropped) == (2, 1)
    labels = pushed.points[0].labels
    assert labels.count("=") == otlp.LABELS_MAX
    assert labels.count("v") == otlp.LABELS_MAX * otlp.LABEL_CHARS_MAX


def test_the_labels_of_a_push_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each point has all labels of its resource, which are sent once."""
    monkeypatch.setattr(otlp, "PUSH_LABEL_CHARS_MAX", 10_000)
    many = tuple(attribute(f"k{n}", string_value="v" * 250) for n in range(30))
    points = [NumberDataPoint(as_int=n) for n in range(100)]
    pushed = read_points(data(gauge("g", *points), resource=many), {})
    assert (len(pushed.points), pushed.dropped) == (2, 1)


def test_what_is_not_otlp_is_an_error() -> None:
    with pytest.raises(ValueError):
        read_points(b"\xff\xff", {})
