"""Creates a broker's parts for transactions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from kafkapy.common.ports import Clock
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kafkapy.metadata.cache import MetadataCache
from kafkapy.replication.partition import Partition
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.coordinators.coordinator_log import CallLater
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.marker_sender import MarkerSender
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.security.node_security import NodeSecurity


class Transactions(NamedTuple):
    """The transaction coordinator, and the marker writer and verifier of partition leaders."""

    service: TransactionService
    markers: MarkerWriter
    verifier: TransactionVerifier


def set_up_transactions(
    config: KafkaConfig,
    broker_id: int,
    replicas: ReplicaManager,
    groups: GroupService,
    producer_ids: ProducerIdManager,
    metadata: MetadataCache,
    waiter: MetadataWaiter,
    security: NodeSecurity,
    clock: Clock,
    call_later: CallLater,
    version: Callable[[], int],
    spawn: Callable[[Coroutine[Any, Any, None]], None],
) -> Transactions:
    """Create the parts of one broker. The group and transaction coordinators follow the leadership
    of its replicas. `version` returns the cluster's transaction version.
    """
    timeout_ms = config.get_int("request.timeout.ms")

    def nodes() -> NodeClients:
        # Separate clients: a verification must not wait for markers that are being replicated.
        return NodeClients(
            metadata,
            config.inter_broker_listener,
            str(broker_id),
            request_timeout_ms=timeout_ms,
            security=security,
        )

    markers = MarkerWriter(replicas, groups, clock, timeout_ms)
    service = TransactionService(
        TransactionCoordinator(
            TransactionConfig.from_values(config.values), clock, version=version
        ),
        replicas,
        clock,
        config,
        call_later,
        producer_ids=producer_ids,
        markers=MarkerSender(
            broker_id, metadata, markers, nodes(), call_later, lambda: waiter.is_complete
        ),
        spawn=spawn,
    )
    verifier = TransactionVerifier(
        broker_id, metadata, replicas, service, nodes(), clock, call_later
    )

    def on_leadership(partition: Partition, leads: bool) -> None:
        groups.on_leadership(partition, leads)
        service.on_leadership(partition, leads)

    replicas.on_leadership = on_leadership
    return Transactions(service, markers, verifier)
