"""Metrics of the ZooKeeper session (`SessionExpireListener`, `ZooKeeperClient`)."""

from __future__ import annotations

from typing import Final

from kafkapy.server.counts.request_times import RequestTimes

CONNECTED: Final = "CONNECTED"
STATES: Final = ("CONNECTING", CONNECTED, "EXPIRED", "AUTH_FAILED", "CLOSED")
"""As `SessionState` names them; `kazoo_session.ConnectionState` has them as its values."""

_COUNTED: Final = {
    "CONNECTING": "zookeeperdisconnects",
    CONNECTED: "zookeepersyncconnects",
    "EXPIRED": "zookeeperexpires",
    "AUTH_FAILED": "zookeeperauthfailures",
}


class ZooKeeperMetrics:
    """`state` is None for a broker without ZooKeeper. `counts` by the name of their meter."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.counts = dict.fromkeys(_COUNTED.values(), 0)
        self.latency = RequestTimes()

    def changed(self, state: str) -> None:
        """The session is in another state: one of `STATES`."""
        # While it was never connected it has lost nothing.
        if state in _COUNTED and (state != "CONNECTING" or self.state == CONNECTED):
            self.counts[_COUNTED[state]] += 1
        self.state = state
