"""The series that clients have pushed, in Prometheus' text format.

Deltas are added up, because Prometheus' counters only grow. The memory of series is bounded, for
each client and for all. Points that do not fit are dropped and counted. A series ends with its
client, or when three successive pushes of the client lack the series.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from kafkapy.common.uuid import Uuid
from kafkapy.metadata.otlp import Histogram, Point

CLIENT_BYTES_MAX: Final = 1 << 20
BYTES_MAX: Final = 1 << 25
SERIES_BYTES: Final = 400
"""The memory that a series counts in addition to its texts; about as much as Python uses."""
_BUCKET_BYTES: Final = 80
_MAX_MISSED_PUSHES: Final = 3
_LINES_AT_ONCE: Final = 1_000


@dataclass(slots=True)
class _Series:
    value: float | Histogram
    last_push: int
    """The number of the client's last push that contained the series."""
    size_bytes: int


@dataclass(slots=True)
class _Family:
    """All series of a name."""

    kind: str
    series: dict[tuple[Uuid, str], _Series] = field(default_factory=dict)


@dataclass(slots=True)
class _Client:
    pushes: int = 0
    size_bytes: int = 0
    keys: dict[tuple[str, str], None] = field(default_factory=dict)
    """Name and labels of each series of the client."""


class ClientSeries:
    """The series of all clients of a broker."""

    def __init__(self) -> None:
        self.dropped = 0
        self.size_bytes = 0
        self._families: dict[str, _Family] = {}
        self._clients: dict[Uuid, _Client] = {}

    @property
    def clients(self) -> Collection[Uuid]:
        """The clients that have series."""
        return self._clients.keys()

    def push(self, client_id: Uuid, points: Iterable[Point]) -> None:
        """Add one push of a client."""
        client = self._clients.setdefault(client_id, _Client())
        client.pushes += 1
        for point in points:
            self._add_point(client_id, client, point)
        stale = [
            key
            for key in client.keys
            if client.pushes - self._families[key[0]].series[client_id, key[1]].last_push
            >= _MAX_MISSED_PUSHES
        ]
        for key in stale:
            self._remove_series(client_id, client, key)

    def retain_clients(self, client_ids: Collection[Uuid]) -> None:
        """End the series of all clients except these."""
        for client_id in [each for each in self._clients if each not in client_ids]:
            client = self._clients.pop(client_id)
            for key in list(client.keys):
                self._remove_series(client_id, client, key)

    def _add_point(self, client_id: Uuid, client: _Client, point: Point) -> None:
        family = self._families.get(point.name)
        if family is not None and family.kind != point.kind:
            family.kind = "untyped"  # so that no client decides for the others
        series = None if family is None else family.series.get((client_id, point.labels))
        size_bytes = _size_bytes(point)
        more_bytes = size_bytes if series is None else size_bytes - series.size_bytes
        if more_bytes > 0 and (
            client.size_bytes + more_bytes > CLIENT_BYTES_MAX
            or self.size_bytes + more_bytes > BYTES_MAX
        ):
            self.dropped += 1
            return
        client.size_bytes += more_bytes
        self.size_bytes += more_bytes
        if series is not None:
            series.value = _sum(series.value, point.value) if point.is_delta else point.value
            series.last_push = client.pushes
            series.size_bytes = size_bytes
            return
        family = self._families.setdefault(point.name, _Family(point.kind))
        family.series[client_id, point.labels] = _Series(point.value, client.pushes, size_bytes)
        client.keys[point.name, point.labels] = None

    def _remove_series(self, client_id: Uuid, client: _Client, key: tuple[str, str]) -> None:
        name, labels = key
        family = self._families[name]
        series = family.series.pop((client_id, labels))
        if not family.series:
            del self._families[name]
        del client.keys[key]
        client.size_bytes -= series.size_bytes
        self.size_bytes -= series.size_bytes

    def text(self) -> Iterator[str]:
        """All series, in pieces. Pushes may come between two pieces."""
        for name in list(self._families):
            family = self._families.get(name)
            if family is None:
                continue
            yield f"# TYPE {name} {family.kind}\n"
            rows = iter([(labels, each.value) for (_, labels), each in family.series.items()])
            while batch := list(islice(rows, _LINES_AT_ONCE)):
                yield "".join(_lines(name, labels, value) for labels, value in batch)


def _size_bytes(point: Point) -> int:
    buckets = len(point.value.counts) if isinstance(point.value, Histogram) else 0
    # A character that is not ASCII takes up to four bytes, and so do all others of its text.
    chars = len(point.name) + len(point.labels)
    width = 1 if point.labels.isascii() else 4
    return SERIES_BYTES + chars * width + buckets * _BUCKET_BYTES


def _sum(old: float | Histogram, new: float | Histogram) -> float | Histogram:
    if not isinstance(new, Histogram):
        return new if isinstance(old, Histogram) else old + new
    if not isinstance(old, Histogram) or old.bounds != new.bounds:
        return new
    counts = tuple(a + b for a, b in zip(old.counts, new.counts, strict=True))
    return Histogram(new.bounds, counts, old.total + new.total)


def _lines(name: str, labels: str, value: float | Histogram) -> str:
    if not isinstance(value, Histogram):
        return f"{name}{{{labels}}} {value!r}\n"
    bounds = [*map(repr, value.bounds), "+Inf"]
    buckets = "".join(
        f'{name}_bucket{{{labels},le="{bound}"}} {count}\n'
        for bound, count in zip(bounds, value.counts, strict=True)
    )
    return (
        f"{buckets}{name}_sum{{{labels}}} {value.total!r}\n"
        f"{name}_count{{{labels}}} {value.counts[-1]}\n"
    )
