"""Metrics of clients in OpenTelemetry's format (OTLP), read as data points with Prometheus' names.

Names and units follow Prometheus' own rules for OTLP: words joined by `_`, the unit as the last
word, `_total` at the end of counters. Points of other kinds (summaries, exponential histograms) are
counted as dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, Metric, MetricsData

ELEMENTS_MAX: Final = 5_000
"""The limit of resources, scopes, metrics and points in one push. A client cannot have more series
anyway, and a push of one megabyte has room for half a million empty elements."""
PUSH_LABEL_CHARS_MAX: Final = 1 << 22
"""The limit for all points of a push together. A push has the labels of a resource once, but here
each of its points has them."""
BUCKETS_MAX: Final = 200
NAME_CHARS_MAX: Final = 250
LABEL_CHARS_MAX: Final = 250
LABELS_MAX: Final = 30
RESERVED_PREFIX: Final = "kafka_"
"""The prefix of the broker's own metrics."""

_DELTA: Final = 1
_WORD_SEPARATORS: Final = re.compile(r"[^a-zA-Z0-9:]+")
_INVALID_LABEL_CHARS: Final = re.compile(r"[^a-zA-Z0-9_]")
# Prometheus refuses a whole page for one sample that has a label twice.
_RESERVED_LABELS: Final = frozenset({"le", "__name__"})
_UNITS: Final[Mapping[str, str]] = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tibibytes",
    "KBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "%": "percent",
    "1": "",
}
_PER_UNITS: Final[Mapping[str, str]] = {
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "y": "year",
}


class Histogram(NamedTuple):
    """Cumulative counts of buckets, with their upper bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Point(NamedTuple):
    """A value of one series; `kind` is counter, gauge or histogram. `labels` are as Prometheus
    writes them, between braces."""

    name: str
    kind: str
    labels: str
    value: float | Histogram
    is_delta: bool


class PushedPoints(NamedTuple):
    """The points of one push, and the number of dropped points. All points beyond `ELEMENTS_MAX` or
    `PUSH_LABEL_CHARS_MAX` count as one."""

    points: list[Point]
    dropped: int


def read_points(data: bytes, client_labels: Mapping[str, str]) -> PushedPoints:
    """Read a push. `client_labels` are added to each point's.

    Raises:
        ValueError: `data` is not OTLP.
    """
    # The import takes 15 ms and 3 MB, which brokers without pushes save.
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        parsed = MetricsData.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    points: list[Point] = []
    dropped = label_chars = 0
    elements = _elements(parsed, client_labels)
    for element in islice(elements, ELEMENTS_MAX):
        if isinstance(element, Point):
            points.append(element)
            label_chars += len(element.labels)
            if label_chars > PUSH_LABEL_CHARS_MAX:
                break
        else:
            dropped += element
    return PushedPoints(points, dropped + any(True for _ in elements))


def _elements(parsed: MetricsData, client_labels: Mapping[str, str]) -> Iterator[Point | int]:
    """The points, 1 for each dropped one, and 0 for each container of points."""
    for resource_metrics in parsed.resource_metrics:
        yield 0
        resource = _labels_of(resource_metrics.resource.attributes)
        for scope in resource_metrics.scope_metrics:
            yield 0
            for metric in scope.metrics:
                yield 0
                yield from _points(metric, resource, client_labels)


def _points(
    metric: Metric, resource: Mapping[str, str], client_labels: Mapping[str, str]
) -> Iterator[Point | int]:
    form = metric.WhichOneof("data")
    if form not in ("sum", "gauge", "histogram"):
        yield 1
        return
    kind = "counter" if form == "sum" and metric.sum.is_monotonic else form
    kind = "gauge" if kind == "sum" else kind
    name = metric_name(metric.name, metric.unit, kind)
    if not name or name.startswith(RESERVED_PREFIX) or len(name) > NAME_CHARS_MAX:
        yield 1
        return
    data = getattr(metric, form)
    is_delta = form != "gauge" and data.aggregation_temporality == _DELTA
    for point in data.data_points:
        own = _labels_of(point.attributes)
        labels = label_text({**resource, **own, **client_labels})
        value: float | Histogram | None
        if form == "histogram":
            value = _histogram(point)
        else:
            value = float(getattr(point, point.WhichOneof("value") or "as_double"))
        yield 1 if value is None else Point(name, kind, labels, value, is_delta)


def _histogram(point: HistogramDataPoint) -> Histogram | None:
    bounds, counts = tuple(point.explicit_bounds), tuple(point.bucket_counts)
    if len(bounds) > BUCKETS_MAX or len(counts) != len(bounds) + 1:
        return None
    return Histogram(bounds, tuple(accumulate(counts)), point.sum)


def metric_name(name: str, unit: str, kind: str) -> str:
    """Prometheus' name of a metric; "" if no word remains."""
    words = [word for word in _WORD_SEPARATORS.split(name[: 2 * NAME_CHARS_MAX]) if word]
    main, _, per = unit.partition("/")
    for word in (_unit(main, _UNITS), per and f"per_{_unit(per, _PER_UNITS)}"):
        if word and word not in words:
            words.append(word)
    suffix = {"counter": "total", "gauge": "ratio" if unit == "1" else ""}.get(kind, "")
    if words and suffix:
        words = [*(word for word in words if word != suffix), suffix]
    text = "_".join(words)
    return f"_{text}" if text[:1].isdigit() else text


def _unit(unit: str, names: Mapping[str, str]) -> str:
    unit = unit.strip()
    if "{" in unit:  # an annotation
        return ""
    return "_".join(filter(None, _WORD_SEPARATORS.split(names.get(unit, unit))))


def _labels_of(attributes: Iterable[KeyValue]) -> dict[str, str]:
    found = {}
    for attribute in attributes:
        form = attribute.value.WhichOneof("value")
        if form in ("string_value", "int_value", "double_value", "bool_value"):
            value = getattr(attribute.value, form)
            text = str(value).lower() if form == "bool_value" else str(value)
            found[_label_name(attribute.key)] = text[:LABEL_CHARS_MAX]
        if len(found) >= LABELS_MAX:
            break
    return found


def _label_name(name: str) -> str:
    text = _INVALID_LABEL_CHARS.sub("_", name[:LABEL_CHARS_MAX])
    return f"key_{text}" if not text or text[0].isdigit() or text in _RESERVED_LABELS else text


def label_text(labels: Mapping[str, str]) -> str:
    """Labels as Prometheus writes them, sorted; empty values are left out."""
    return ",".join(
        f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()) if value
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
