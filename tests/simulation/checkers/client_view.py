"""Check of the clients' view: no acknowledged record is lost, repeated or moved."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TABLE


class ClientView(Checker):
    """Checks for Jepsen's anomalies, except those that an allowed loss excuses."""

    def on_end(self) -> None:
        history = self.cluster.history
        for unexplained in history.unexplained():
            self.violated(unexplained)
        for topic in history.topics:
            if topic == TABLE:
                continue  # compaction leaves only the last rows
            for anomaly, cases in history.judged(topic).judge().items():
                if cases:
                    self.violated(f"{topic}: {anomaly}: {'; '.join(cases[:3])}")
