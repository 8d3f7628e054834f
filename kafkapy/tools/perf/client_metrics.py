"""librdkafka's statistics: the state of a producer, and `--print-metrics` of the perf tools in the
layout of Kafka's metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

_INTERVAL_MS: Final = 100
_POLLS_MAX: Final = 50


class ClientMetrics:
    """Keeps the newest statistics of one client; names are librdkafka's (STATISTICS.md)."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._latest: Mapping[str, Any] = {}

    def config(self) -> dict[str, Any]:
        """The client's settings."""
        return {"statistics.interval.ms": _INTERVAL_MS, "stats_cb": self.on_statistics}

    def on_statistics(self, statistics: str) -> None:
        """Receive statistics: librdkafka's `stats_cb`."""
        self._latest = json.loads(statistics)

    def wait_for_update(self, poll: Callable[[float], object]) -> None:
        """Wait for new statistics with the client's `poll(seconds)`, for at most five seconds."""
        previous = self._latest
        self._wait(poll, lambda: self._latest is not previous)

    def wait_for_producer_id(self, poll: Callable[[float], object]) -> None:
        """Wait until an idempotent producer has its id, for at most five seconds."""
        self._wait(poll, lambda: bool(self._latest) and not self._lacks_producer_id())

    def _lacks_producer_id(self) -> bool:
        # Other producers have no such statistics.
        return "eos" in self._latest and self._latest["eos"]["idemp_state"] != "Assigned"

    def _wait(self, poll: Callable[[float], object], is_done: Callable[[], bool]) -> None:
        for _ in range(_POLLS_MAX):
            poll(_INTERVAL_MS / 1000)
            if is_done():
                return

    def lines(self) -> list[str]:
        """A blank line, a header, and each number."""
        found = self.values()
        width = max(map(len, found), default=0)
        head = f"{'Metric Name':{width}}   Value"
        rows = (f"{name:{width}} : {_format_number(number)}" for name, number in found.items())
        return ["", head, *rows]

    def values(self) -> dict[str, float]:
        """The numbers by their names, `group:name:{tags}`, sorted."""
        return dict(sorted(self._rows()))

    def _rows(self) -> Iterator[tuple[str, float]]:
        tags = f"{{client-id={self._latest.get('client_id', '')}}}"
        yield from _numbers(f"{self._kind}-metrics", self._latest, tags)
        for broker in self._latest.get("brokers", {}).values():
            node = f"{tags[:-1]}, node-id=node-{broker.get('nodeid')}}}"
            yield from _numbers(f"{self._kind}-node-metrics", broker, node)


def _numbers(group: str, values: Mapping[str, Any], tags: str) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, int | float):
            yield f"{group}:{name}:{tags}", value


def _format_number(number: float) -> str:
    return f"{number:.3f}" if isinstance(number, float) else str(number)
