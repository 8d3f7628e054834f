"""A share group is given every record, and none again that it is done with.

A partition that lost records by Kafka's rules is not judged, and none is if the group's or the
share coordinator's log lost something.
"""

from __future__ import annotations

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from tests.harness.faults import share_anomalies
from tests.harness.faults.anomalies import Outcome
from tests.harness.faults.share_anomalies import Place
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TOPIC
from tests.simulation.share_members import COUNT_LIMIT

_LATE_S = 10.0
"""How long a leader that was replaced may give records of which others have heard the end."""


class ShareDeliveries(Checker):
    """Holds what the members of the share group were given against what was written."""

    def on_end(self) -> None:
        history = self.cluster.history
        logs = (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC)
        if not self.cluster.plan.sharers or any(history.may_have_lost(topic, 0) for topic in logs):
            return
        written = {
            Place(send.partition, send.offset)
            for send in history.judged(TOPIC).sends
            if send.outcome is Outcome.ACKED and send.offset >= 0
        }
        deliveries = [
            each
            for each in history.share_deliveries
            if not history.may_have_lost(TOPIC, each.place.partition)
        ]
        written = {each for each in written if not history.may_have_lost(TOPIC, each.partition)}
        found = share_anomalies.judge(deliveries, written, COUNT_LIMIT, _LATE_S)
        for anomaly, cases in found.items():
            if cases:
                self.violated(f"{anomaly}: {cases[0]} ({len(cases)} in all)")
