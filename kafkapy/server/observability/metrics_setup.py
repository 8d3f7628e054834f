"""Starts the metrics server of a broker."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.common.ports import Clock
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.observability.cluster_metrics import ClusterMetrics
from kafkapy.server.observability.coordinator_metrics import CoordinatorMetrics
from kafkapy.server.observability.metrics_server import MetricsCollector, MetricsServer
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaServer")


async def start_metrics(
    config: KafkaConfig,
    metrics: Metrics,
    replicas: ReplicaManager,
    fetch_sessions: FetchSessionCache,
    quotas: ClientQuotas,
    connections: ConnectionTable,
    clock: Clock,
    controller: ControllerTask,
    max_lag: Callable[[], int],
    groups: GroupService,
    transactions: TransactionService,
) -> MetricsServer:
    """The server at `kafkapy.metrics.port`, with all metrics of the broker."""
    collector = MetricsCollector(
        metrics,
        replicas,
        fetch_sessions,
        quotas,
        connections,
        clock,
        (
            ClusterMetrics(controller, replicas, metrics.zookeeper, max_lag),
            CoordinatorMetrics(groups, transactions),
        ),
    )
    server = MetricsServer(collector)
    port = config.get_int("kafkapy.metrics.port")
    await server.start(config.get_str("kafkapy.metrics.host"), port)
    logger.info("Metrics on port %d", server.port)
    return server
