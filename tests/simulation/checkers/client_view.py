"""Check that clients saw one log: nothing acknowledged is lost, nothing is repeated or moved."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TABLE


class ClientView(Checker):
    """Jepsen's anomalies, but for what an allowed loss excuses."""

    def on_end(self) -> None:
        history = self.cluster.history
        for unexplained in history.unexplained():
            self.violated(unexplained)
        for topic in history.topics:
            if topic == TABLE:
                continue  # of which compaction leaves the last rows only
            for anomaly, cases in history.judged(topic).judge().items():
                if cases:
                    self.violated(f"{topic}: {anomaly}: {'; '.join(cases[:3])}")
