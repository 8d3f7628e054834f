"""Metric families of the coordinators of groups and of transactions.

Names are those that the JMX exporter gives Kafka's beans (`GroupMetadataManager`,
`TransactionMarkerChannelManager`, `group-coordinator-metrics`, `transaction-coordinator-metrics`);
consumer groups are counted as in Kafka 4. Kafka does not count transactional ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroupState
from kafkapy.coordinator.groups.group import GroupState
from kafkapy.coordinator.transactions.state import TransactionState
from kafkapy.server.counts.metric_table import gauge
from kafkapy.server.observability.cluster_metrics import worst_and_mean

if TYPE_CHECKING:
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.transaction_service import TransactionService

_GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager"
_CONSUMER_GROUPS: Final = "kafka_server_groupcoordinatormetrics_consumer_group_count"
_IDS: Final = "kafka_coordinator_transaction_transactionstatemanager_numtransactionalids"
_MARKERS: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager"


class CoordinatorMetrics:
    """Makes the families out of the coordinators' state, when scraped."""

    def __init__(self, groups: GroupService, transactions: TransactionService) -> None:
        self._groups = groups
        self._transactions = transactions

    def collect(self) -> Iterator[Any]:
        yield from self._group_gauges()
        yield from self._transaction_gauges()
        for kind, times in (
            ("group", self._groups.load_times),
            ("transaction", self._transactions.load_times),
        ):
            prefix = f"kafka_server_{kind}coordinatormetrics_partition_load_time"
            yield from worst_and_mean(prefix, [((), times)])

    def _group_gauges(self) -> Iterator[Any]:
        coordinator = self._groups.coordinator
        groups = coordinator.groups_by_state()
        values = {"numoffsets": coordinator.num_offsets(), "numgroups": groups.total()}
        values |= {f"numgroups{state.value.lower()}": groups[state] for state in GroupState}
        for name, value in values.items():
            yield gauge(f"{_GROUPS}_{name}", value)
        consumer_groups = coordinator.consumer_groups_by_state()
        family = gauge(_CONSUMER_GROUPS)
        for state in ConsumerGroupState:
            family.add_metric([state.value.lower()], consumer_groups[state])
        yield family

    def _transaction_gauges(self) -> Iterator[Any]:
        coordinator = self._transactions.coordinator
        ids = coordinator.ids_by_state()
        family = gauge(_IDS)
        for state in TransactionState:
            family.add_metric([state.text], ids[state])
        yield family
        yield gauge(f"{_MARKERS}_unknowndestinationqueuesize", coordinator.num_leaderless())
        yield gauge(f"{_MARKERS}_logappendretryqueuesize", coordinator.num_append_retries())
