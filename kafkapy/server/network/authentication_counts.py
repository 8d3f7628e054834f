"""Counts of logins on a broker's listeners (`Selector.SelectorMetrics`, SocketServer).

Each login is counted once. PLAINTEXT listeners have no counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from kafkapy.server.counts.request_times import RequestTimes

TLS: Final = "SSL"
"""The mechanism in counts of TLS handshakes."""

Login = tuple[str, str]
"""(listener, mechanism), both from the configuration, so that clients cannot create counters. The
mechanism is empty for clients that were refused before they chose one."""


class AuthenticationCounts:
    """Counts by listener and mechanism; `renewal_times` and `expired_killed` by listener."""

    def __init__(self) -> None:
        self.succeeded: Counter[Login] = Counter()
        self.failed: Counter[Login] = Counter()
        self.renewed: Counter[Login] = Counter()
        self.failed_to_renew: Counter[Login] = Counter()
        self.renewal_times: defaultdict[str, RequestTimes] = defaultdict(RequestTimes)
        self.expired_killed: Counter[str] = Counter()

    def handshake_failed(self, listener: str) -> None:
        """Count a failed TLS handshake."""
        self.failed[listener, TLS] += 1
