"""Metrics of the ZooKeeper session (`SessionExpireListener`, `ZooKeeperClient`)."""

from __future__ import annotations

from typing import Final

from kafkapy.server.counts.request_times import RequestTimes

CONNECTED: Final = "CONNECTED"
STATES: Final = ("CONNECTING", CONNECTED, "EXPIRED", "AUTH_FAILED", "CLOSED")
"""The names of Kafka's `SessionState` metric, which are the values of `ConnectionState`."""

_METERS_BY_STATE: Final = {
    "CONNECTING": "zookeeperdisconnects",
    CONNECTED: "zookeepersyncconnects",
    "EXPIRED": "zookeeperexpires",
    "AUTH_FAILED": "zookeeperauthfailures",
}


class ZooKeeperMetrics:
    """Metrics of one session. `state` is None for a broker without ZooKeeper. `counts` are by the
    name of the meter.
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.counts = dict.fromkeys(_METERS_BY_STATE.values(), 0)
        self.latency = RequestTimes()

    def set_state(self, state: str) -> None:
        """Set the new state of the session, one of `STATES`, and count it."""
        # A session that was not connected has lost no connection.
        if state in _METERS_BY_STATE and (state != "CONNECTING" or self.state == CONNECTED):
            self.counts[_METERS_BY_STATE[state]] += 1
        self.state = state
