"""Metric families of a broker's part in the cluster: controller, replication, ZooKeeper.

Names are those that the JMX exporter gives Kafka's beans; rates are counters. Gauges of the active
controller are 0 on other brokers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

from kafkapy.controller.context import ControllerContext
from kafkapy.controller.controller import Controller
from kafkapy.controller.partition_states import PartitionState
from kafkapy.server.counts.metric_table import counter, gauge, summary
from kafkapy.server.counts.request_times import RequestTimes
from kafkapy.server.counts.zookeeper_metrics import STATES

if TYPE_CHECKING:
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
    from kafkapy.server.replicas.replica_manager import ReplicaManager

QUANTILES: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")


def timer(name: str, times: RequestTimes) -> SummaryMetricFamily:
    """A timer in milliseconds without labels; quantiles are of the latest times."""
    family = summary(name, times.count, times.total_s * 1000)
    for q in QUANTILES:
        family.add_sample(name, {"quantile": q}, times.quantile(float(q)) * 1000)
    return family


def worst_and_mean(
    prefix: str, times: Iterable[tuple[Sequence[str], RequestTimes]]
) -> Iterator[GaugeMetricFamily]:
    """Gauges `prefix_max` and `prefix_avg` of the latest times in milliseconds; NaN without times,
    as in Kafka. `times`: (values of the labels, times)."""
    rows = list(times)
    for name, statistic in (("max", RequestTimes.maximum), ("avg", RequestTimes.average)):
        family = gauge(f"{prefix}_{name}")
        for values, timer_ in rows:
            family.add_metric(values, statistic(timer_) * 1000 if timer_.count else math.nan)
        yield family


class ClusterMetrics:
    """Makes the families out of the broker's state, when scraped."""

    def __init__(
        self,
        controller: ControllerTask,
        replicas: ReplicaManager,
        session: ZooKeeperMetrics,
        max_lag: Callable[[], int],
    ) -> None:
        self._task = controller
        self._replicas = replicas
        self._session = session
        self._max_lag = max_lag

    def collect(self) -> Iterator[Any]:
        yield from self._controller()
        yield from self._replication()
        yield from self._zookeeper()

    def _controller(self) -> Iterator[Any]:
        task = self._task
        for name, value in controller_gauges(task.controller).items():
            yield gauge(f"kafka_controller_kafkacontroller_{name}", value)
        yield gauge("kafka_controller_controllereventmanager_eventqueuesize", task.queue_size)
        unclean = 0 if task.controller is None else task.controller.context.unclean_elections
        yield counter("kafka_controller_controllerstats_uncleanleaderelections", unclean)
        # A page is written in slices, between which an event may add its name.
        for name, times in list(task.event_times.by_name.items()):
            prefix = "kafka_controller_controllerstats_"
            yield timer(f"{prefix}{name.lower()}rateandtimems", times)

    def _replication(self) -> Iterator[Any]:
        replicas = self._replicas
        counts = replicas.isr_counts
        for name, value in (
            ("isrshrinks", counts.shrinks),
            ("isrexpands", counts.expands),
            ("failedisrupdates", counts.failed_updates),
        ):
            yield counter(f"kafka_server_replicamanager_{name}", value)
        leader_partitions = [
            partition for partition in replicas.all_partitions() if partition.is_leader
        ]
        at_min = sum(len(p.isr) == p.effective_min_isr for p in leader_partitions)
        moving = sum(bool(p.adding_replicas or p.removing_replicas) for p in leader_partitions)
        prefix = "kafka_server_replicamanager_"
        yield gauge(f"{prefix}atminisrpartitioncount", at_min)
        yield gauge(f"{prefix}reassigningpartitions", moving)
        lag = gauge("kafka_server_replicafetchermanager_maxlag")
        lag.add_metric(["Replica"], self._max_lag())
        yield lag

    def _zookeeper(self) -> Iterator[Any]:
        metrics = self._session
        if metrics.state is None:
            return
        prefix = "kafka_server_sessionexpirelistener_"
        state = gauge(f"{prefix}sessionstate")
        for name in STATES:
            state.add_metric([name], float(name == metrics.state))
        yield state
        for name, count in metrics.counts.items():
            yield counter(f"{prefix}{name}", count)
        yield timer(
            "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms", metrics.latency
        )


def controller_gauges(controller: Controller | None) -> dict[str, int]:
    """KafkaController's gauges by name, lower case (`KafkaController.newGauge`)."""
    is_active = controller is not None and controller.is_active
    context = ControllerContext() if controller is None or not is_active else controller.context
    deleting = context.is_queued_for_deletion
    return {
        "activecontrollercount": int(is_active),
        "activebrokercount": len(context.live_brokers),
        "globaltopiccount": len(context.topics),
        "globalpartitioncount": len(context.leadership),
        "offlinepartitionscount": sum(
            state is PartitionState.OFFLINE and not deleting(partition.topic)
            for partition, state in context.partition_states.items()
        ),
        "preferredreplicaimbalancecount": sum(
            state.leader != context.assignment(partition).replicas[0]
            for partition, state in context.leadership.items()
            if not deleting(partition.topic)
        ),
        "topicstodeletecount": len(context.topics_to_delete),
        "topicsineligibletodeletecount": len(context.topics_ineligible),
    }
