"""Check that clients saw one log: nothing acknowledged is lost, nothing is repeated or moved."""

from __future__ import annotations

from tests.harness.faults.anomalies import History
from tests.simulation.checkers.base import Checker


class ClientView(Checker):
    """Jepsen's anomalies, for the partitions of which no loss is allowed."""

    def on_end(self) -> None:
        history = self.cluster.history
        for unexplained in history.unexplained():
            self.violated(unexplained)
        for topic, seen in history.topics.items():
            judged = History()
            judged.sends = [s for s in seen.sends if (topic, s.partition) not in history.lossy]
            judged.polls = [p for p in seen.polls if (topic, p.partition) not in history.lossy]
            for anomaly, cases in judged.judge().items():
                if cases:
                    self.violated(f"{topic}: {anomaly}: {'; '.join(cases[:3])}")
