"""Every metric of a broker: name, type, labels and meaning. docs/reference/metrics.md shows it.

Names are those that the JMX exporter gives Kafka's beans; rates are counters. A name that is not
in the table cannot be exported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

_TOPIC: Final = ("topic",)
_CLIENT: Final = ("user", "client_id")
_LISTENER: Final = ("listener",)
_LOGIN: Final = ("listener", "mechanism")


class Metric(NamedTuple):
    """One row: `kind` is gauge, counter or summary."""

    kind: str
    labels: tuple[str, ...]
    meaning: str


def _topic_metrics() -> Iterator[tuple[str, Metric]]:
    for name, meaning in (
        ("messagesin", "Records appended"),
        ("bytesin", "Bytes appended"),
        ("bytesout", "Bytes read by consumers"),
        ("totalproducerequests", "Partitions in produce requests"),
        ("totalfetchrequests", "Partitions in fetch requests of consumers"),
        ("failedproducerequests", "Refused partitions in produce requests"),
        ("failedfetchrequests", "Refused partitions in fetch requests"),
    ):
        text = f"{meaning}; the empty topic has the sum of all"
        yield f"kafka_server_brokertopicmetrics_{name}", Metric("counter", _TOPIC, text)


def _client_metrics() -> Iterator[tuple[str, Metric]]:
    prefix = "kafka_server_client_metrics"
    yield f"{prefix}_instance_count", Metric("gauge", (), "Clients that may push metrics")
    for name, meaning in (
        ("unknown_subscription_request_count", "Pushes with an outdated subscription"),
        ("throttle_count", "Requests of clients before the end of their push interval"),
        ("plugin_export_count", "Accepted pushes"),
        ("plugin_error_count", "Pushes with invalid data"),
        ("dropped_points_count", "Dropped points: no space, or an unsupported kind"),
    ):
        yield f"{prefix}_{name}", Metric("counter", (), meaning)


def _controller_metrics() -> Iterator[tuple[str, Metric]]:
    for name, meaning in (
        ("activecontrollercount", "1 on the broker that is the controller, 0 on others"),
        ("activebrokercount", "Live brokers, on the controller"),
        ("globaltopiccount", "Topics of the cluster, on the controller"),
        ("globalpartitioncount", "Partitions of the cluster, on the controller"),
        ("offlinepartitionscount", "Partitions without a leader, on the controller"),
        (
            "preferredreplicaimbalancecount",
            "Partitions whose leader is not their first replica, on the controller",
        ),
        ("topicstodeletecount", "Topics whose deletion is not finished, on the controller"),
        (
            "topicsineligibletodeletecount",
            "Topics whose deletion waits for a broker or a reassignment, on the controller",
        ),
    ):
        yield f"kafka_controller_kafkacontroller_{name}", Metric("gauge", (), meaning)
    for event in CONTROLLER_EVENTS:
        name = f"kafka_controller_controllerstats_{event.lower()}rateandtimems"
        meaning = f"Milliseconds of each {event} event; absent before the first one"
        yield name, Metric("summary", (), meaning)


def _group_metrics() -> Iterator[tuple[str, Metric]]:
    prefix = "kafka_coordinator_group_groupmetadatamanager"
    yield (
        f"{prefix}_numoffsets",
        Metric("gauge", (), "Committed offsets stored here"),
    )
    yield f"{prefix}_numgroups", Metric("gauge", (), "Groups coordinated here")
    for state in ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"):
        text = f"Groups coordinated here in state {state}"
        yield f"{prefix}_numgroups{state.lower()}", Metric("gauge", (), text)


def _max_and_avg_metrics(
    prefix: str, text: str, labels: tuple[str, ...] = ()
) -> Iterator[tuple[str, Metric]]:
    for name, word in (("max", "Longest"), ("avg", "Mean")):
        meaning = f"{word} recent time {text}, in milliseconds"
        yield f"{prefix}_{name}", Metric("gauge", labels, meaning)


def _quota_metrics() -> Iterator[tuple[str, Metric]]:
    """Metrics of client quotas. The first item of a row is the bean's type. A client without a
    quota has no sample.
    """
    for bean, rate, meaning in (
        ("produce", "byte_rate", "Bytes a second produced by the client"),
        ("fetch", "byte_rate", "Bytes a second fetched by the client"),
        ("request", "request_time", "Percent of a thread's time used by the client's requests"),
        ("controllermutation", "mutation_rate", "Partitions a second changed by the client"),
    ):
        yield f"kafka_server_{bean}_{rate}", Metric("gauge", _CLIENT, meaning)
        pause = f"Mean throttle time of the client by its {bean} quota, in milliseconds"
        yield f"kafka_server_{bean}_throttle_time", Metric("gauge", _CLIENT, pause)


CONTROLLER_EVENTS: Final = (
    "AlterPartitionReassignment",
    "AutoLeaderBalance",
    "ControlledShutdown",
    "ControllerChange",
    "IsrChange",
    "LeaderAndIsrResponseReceived",
    "LeaderElection",
    "LogDirChange",
    "ManualLeaderBalance",
    "TopicChange",
    "TopicDeletion",
    "UncleanLeaderElectionEnable",
)
"""States of Kafka's controller whose times are measured."""

METRICS: Final[dict[str, Metric]] = {
    **dict(_topic_metrics()),
    "kafka_network_requestmetrics_requests": Metric("counter", ("request",), "Requests handled"),
    "kafka_network_requestmetrics_localtimems": Metric(
        "summary",
        ("request",),
        "Milliseconds in the handler; quantiles are of the latest requests",
    ),
    "kafka_server_replicamanager_partitioncount": Metric("gauge", (), "Replicas on this broker"),
    "kafka_server_replicamanager_leadercount": Metric("gauge", (), "Partitions led by this broker"),
    "kafka_server_replicamanager_underreplicatedpartitions": Metric(
        "gauge", (), "Partitions led here with fewer in-sync replicas than replicas"
    ),
    "kafka_server_replicamanager_underminisrpartitioncount": Metric(
        "gauge", (), "Partitions led here with fewer in-sync replicas than min.insync.replicas"
    ),
    "kafka_server_replicamanager_atminisrpartitioncount": Metric(
        "gauge", (), "Partitions led here with exactly min.insync.replicas in-sync replicas"
    ),
    "kafka_server_replicamanager_offlinereplicacount": Metric(
        "gauge", (), "Replicas in log directories that failed"
    ),
    "kafka_server_replicamanager_reassigningpartitions": Metric(
        "gauge", (), "Partitions led here that are being reassigned"
    ),
    "kafka_server_replicamanager_isrshrinks": Metric(
        "counter", (), "Replicas removed from ISRs of partitions led here"
    ),
    "kafka_server_replicamanager_isrexpands": Metric(
        "counter", (), "Replicas added to ISRs of partitions led here"
    ),
    "kafka_server_replicamanager_failedisrupdates": Metric(
        "counter", (), "Changes of ISRs that the controller or ZooKeeper refused"
    ),
    "kafka_server_replicafetchermanager_maxlag": Metric(
        "gauge", ("clientid",), "Lag of the slowest partition followed here, in records"
    ),
    "kafka_server_kafkaserver_brokerstate": Metric(
        "gauge", (), "1 starting, 2 recovering logs, 3 running, 6 controlled shutdown, 7 stopping"
    ),
    "kafka_log_logmanager_offlinelogdirectorycount": Metric(
        "gauge", (), "Log directories that failed"
    ),
    "kafka_log_log_size": Metric("gauge", ("topic", "partition"), "Bytes of a replica's log"),
    "kafka_log_log_logstartoffset": Metric(
        "gauge", ("topic", "partition"), "First offset of a replica's log"
    ),
    "kafka_log_log_logendoffset": Metric(
        "gauge", ("topic", "partition"), "Offset of the next record of a replica's log"
    ),
    "kafka_server_fetchsessioncache_numincrementalfetchsessions": Metric(
        "gauge", (), "Cached fetch sessions"
    ),
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": Metric(
        "gauge", (), "Partitions of all fetch sessions"
    ),
    "kafka_server_delayedoperationpurgatory_purgatorysize": Metric(
        "gauge", ("delayedoperation",), "Requests that wait for a condition or their timeout"
    ),
    **dict(_controller_metrics()),
    "kafka_controller_controllereventmanager_eventqueuesize": Metric(
        "gauge", (), "Events that wait for the controller"
    ),
    "kafka_controller_controllerstats_uncleanleaderelections": Metric(
        "counter", (), "Leaders elected from outside the ISR: records may be lost"
    ),
    "kafka_server_sessionexpirelistener_sessionstate": Metric(
        "gauge", ("state",), "1 for the state of the ZooKeeper session, 0 for the others"
    ),
    "kafka_server_sessionexpirelistener_zookeeperdisconnects": Metric(
        "counter", (), "Lost connections to ZooKeeper"
    ),
    "kafka_server_sessionexpirelistener_zookeepersyncconnects": Metric(
        "counter", (), "Connections to ZooKeeper"
    ),
    "kafka_server_sessionexpirelistener_zookeeperexpires": Metric(
        "counter", (), "Expired ZooKeeper sessions"
    ),
    "kafka_server_sessionexpirelistener_zookeeperauthfailures": Metric(
        "counter", (), "Authentications refused by ZooKeeper"
    ),
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms": Metric(
        "summary", (), "Milliseconds from a request to ZooKeeper to its response"
    ),
    **dict(_group_metrics()),
    "kafka_server_groupcoordinatormetrics_consumer_group_count": Metric(
        "gauge", ("state",), "Groups of the consumer protocol coordinated here"
    ),
    "kafka_coordinator_transaction_transactionstatemanager_numtransactionalids": Metric(
        "gauge", ("state",), "Transactional ids coordinated here"
    ),
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize": (
        Metric("gauge", (), "Decided transactions with a partition without a leader")
    ),
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize": (
        Metric("gauge", (), "Completed transactions that are not yet appended to the log")
    ),
    **dict(
        _max_and_avg_metrics(
            "kafka_server_groupcoordinatormetrics_partition_load_time",
            "to load a partition of __consumer_offsets",
        )
    ),
    **dict(
        _max_and_avg_metrics(
            "kafka_server_transactioncoordinatormetrics_partition_load_time",
            "to load a partition of __transaction_state",
        )
    ),
    **dict(_quota_metrics()),
    **dict(_client_metrics()),
    "kafka_server_controllermutation_tokens": Metric(
        "gauge", _CLIENT, "Partitions that the client may change at once"
    ),
    "kafka_server_request_exempt_request_time": Metric(
        "gauge", (), "Percent of a thread's time for requests that are exempt from quotas"
    ),
    "kafka_server_socketservermetrics_broker_connection_accept_rate": Metric(
        "gauge", (), "Connections accepted a second"
    ),
    "kafka_server_socketservermetrics_connection_accept_rate": Metric(
        "gauge", ("listener", "ip"), "Connections accepted a second, of a listener or an address"
    ),
    "kafka_server_socketservermetrics_connection_accept_throttle_time": Metric(
        "gauge", _LISTENER, "Mean milliseconds for which the listener accepts no connections"
    ),
    "kafka_server_socketservermetrics_ip_connection_accept_throttle_time": Metric(
        "gauge", _LISTENER, "Mean milliseconds after which connections beyond a quota are closed"
    ),
    "kafka_server_socketservermetrics_connection_count": Metric(
        "gauge", _LISTENER, "Open connections"
    ),
    "kafka_server_socketservermetrics_successful_authentication": Metric(
        "counter", _LOGIN, "Successful authentications"
    ),
    "kafka_server_socketservermetrics_failed_authentication": Metric(
        "counter", _LOGIN, "Failed authentications"
    ),
    "kafka_server_socketservermetrics_successful_reauthentication": Metric(
        "counter", _LOGIN, "Successful reauthentications"
    ),
    "kafka_server_socketservermetrics_failed_reauthentication": Metric(
        "counter", _LOGIN, "Failed reauthentications"
    ),
    "kafka_server_socketservermetrics_expired_connections_killed_count": Metric(
        "gauge", _LISTENER, "Connections closed because their session expired"
    ),
    "kafka_network_socketserver_expiredconnectionskilledcount": Metric(
        "gauge", (), "Connections closed because their session expired, of all listeners"
    ),
    **dict(
        _max_and_avg_metrics(
            "kafka_server_socketservermetrics_reauthentication_latency",
            "to reauthenticate",
            _LISTENER,
        )
    ),
}


def gauge(name: str, value: float | None = None) -> GaugeMetricFamily:
    """A gauge of the table. `value` is for gauges without labels."""
    row = METRICS[name]
    return GaugeMetricFamily(name, row.meaning, value, row.labels or None)


def counter(name: str, value: float | None = None) -> CounterMetricFamily:
    """A counter of the table; its samples end in `_total`."""
    row = METRICS[name]
    return CounterMetricFamily(name, row.meaning, value, row.labels or None)


def summary(name: str, count: int | None = None, total: float | None = None) -> SummaryMetricFamily:
    """A summary of the table."""
    row = METRICS[name]
    return SummaryMetricFamily(name, row.meaning, count, total, row.labels or None)
