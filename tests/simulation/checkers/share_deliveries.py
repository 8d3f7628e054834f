"""Check that a share group gets every record, and none again after it was accepted or rejected.

Partitions that lost records by Kafka's rules are not checked. No partition is checked if the log of
the group coordinator or of the share coordinator lost records.
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
"""The time in which a replaced leader may deliver records that were accepted at its successor."""


class ShareDeliveries(Checker):
    """Compares the deliveries of the share group with the acknowledged records."""

    def on_end(self) -> None:
        history = self.cluster.history
        logs = (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC)
        if not self.cluster.plan.share_members or any(
            history.may_have_lost(topic, 0) for topic in logs
        ):
            return
        whole = [
            partition
            for partition in range(self.cluster.plan.partitions)
            if not history.may_have_lost(TOPIC, partition)
        ]
        written = {
            Place(send.partition, send.offset)
            for send in history.judged(TOPIC).sends
            if send.partition in whole and send.outcome is Outcome.ACKED and send.offset >= 0
        }
        deliveries = [each for each in history.share_deliveries if each.place.partition in whole]
        found = share_anomalies.judge(deliveries, written, COUNT_LIMIT, _LATE_S)
        for anomaly, cases in found.items():
            if cases:
                self.violated(f"{anomaly}: {cases[0]} ({len(cases)} in all)")
