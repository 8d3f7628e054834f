"""Prometheus metrics over HTTP: `kafkapy.metrics.port`, names as the JMX exporter gives them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client import Metric, generate_latest

from kafkapy.common.accept_loop import AcceptLoop
from kafkapy.server.counts.metric_table import counter, gauge, summary
from kafkapy.server.observability.client_metrics import ClientMetrics
from kafkapy.server.observability.cluster_metrics import QUANTILES, ClusterMetrics
from kafkapy.server.observability.coordinator_metrics import CoordinatorMetrics
from kafkapy.server.observability.listener_metrics import ListenerMetrics
from kafkapy.server.quotas.quota_metrics import QuotaMetrics
from kafkapy.server.requests.turns import ROWS_AT_ONCE

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.metadata.telemetry import ClientTelemetry
    from kafkapy.replication.fetch_session import FetchSessionCache
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.transaction_service import TransactionService
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.quotas.client_quotas import ClientQuotas
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.requests.outcomes import Completion
    from kafkapy.server.requests.turns import SliceScheduler, Work

_TOPIC_COUNTERS: Final = (
    ("messagesin", "messages_in"),
    ("bytesin", "bytes_in"),
    ("bytesout", "bytes_out"),
    ("totalproducerequests", "produces"),
    ("totalfetchrequests", "fetches"),
    ("failedproducerequests", "failed_produces"),
    ("failedfetchrequests", "failed_fetches"),
)
logger = logging.getLogger("kafka.server.KafkaServer")

_REQUEST_BYTES_MAX: Final = 8192
_FAMILY_CHARS_PER_UNIT: Final = 3
"""About the number of characters of a family that are written in a microsecond."""
_CLIENT_CHARS_PER_UNIT: Final = 200
"""The same for the metrics of clients."""
LIMIT_S: Final = 10.0
CONNECTIONS_MAX: Final = 16


class MetricsCollector:
    """Makes metric families out of the broker's state, when scraped. The state may change between
    two families."""

    def __init__(
        self,
        metrics: Metrics,
        replicas: ReplicaManager,
        sessions: FetchSessionCache,
        quotas: ClientQuotas,
        connections: ConnectionTable,
        clock: Clock,
        others: Sequence[ClusterMetrics | CoordinatorMetrics | ClientMetrics],
    ) -> None:
        """`others` make families of their own, in this order."""
        self._metrics = metrics
        self._replicas = replicas
        self._sessions = sessions
        self._quotas = quotas
        self._connections = connections
        self._clock = clock
        self._others = others

    def collect(self) -> Iterator[Any]:
        yield from self._topics()
        yield from self._requests()
        yield from self._gauges()
        yield from self._purgatories()
        yield from self._logs()
        for other in self._others:
            yield from other.collect()
        yield from QuotaMetrics(self._quotas, self._clock).collect()
        names = self._quotas.creations.listeners
        yield from ListenerMetrics(names, self._connections).collect()

    def _topics(self) -> Iterator[Any]:
        # A late response may have counted for a topic that has left.
        self._metrics.keep_topics(self._replicas.partitions)
        for name, attribute in _TOPIC_COUNTERS:
            family = counter(f"kafka_server_brokertopicmetrics_{name}")
            counts = {t: getattr(c, attribute) for t, c in self._metrics.topics.items()}
            # The empty topic is all topics together, including those that were never served.
            for topic, count in {**counts, "": sum(counts.values())}.items():
                family.add_metric([topic], count)
            yield family

    def _requests(self) -> Iterator[Any]:
        counts = counter("kafka_network_requestmetrics_requests")
        times = summary("kafka_network_requestmetrics_localtimems")
        for name, request in self._metrics.requests.by_name.items():
            counts.add_metric([name], request.count)
            times.add_metric([name], request.count, request.total_s * 1000)
            for q in QUANTILES:
                labels = {"request": name, "quantile": q}
                times.add_sample(times.name, labels, request.quantile(float(q)) * 1000)
        yield counts
        yield times

    def _gauges(self) -> Iterator[Any]:
        partitions = list(self._replicas.all_partitions())
        manager = self._replicas.log_manager
        values = {
            "kafka_server_replicamanager_partitioncount": len(partitions),
            "kafka_server_replicamanager_leadercount": sum(p.is_leader for p in partitions),
            "kafka_server_replicamanager_underreplicatedpartitions": sum(
                p.is_under_replicated for p in partitions
            ),
            "kafka_server_replicamanager_underminisrpartitioncount": sum(
                p.is_under_min_isr for p in partitions
            ),
            "kafka_server_replicamanager_offlinereplicacount": len(self._replicas.offline),
            "kafka_server_kafkaserver_brokerstate": self._metrics.broker_state,
            "kafka_log_logmanager_offlinelogdirectorycount": len(manager.offline_log_dirs),
            "kafka_server_fetchsessioncache_numincrementalfetchsessions": len(self._sessions),
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": (
                self._sessions.partition_count
            ),
        }
        for name, value in values.items():
            yield gauge(name, value)

    def _purgatories(self) -> Iterator[Any]:
        family = gauge("kafka_server_delayedoperationpurgatory_purgatorysize")
        replicas = self._replicas
        for purgatory in (replicas.produce_purgatory, replicas.fetch_purgatory):
            family.add_metric([purgatory.name], len(purgatory))
        yield family

    def _logs(self) -> Iterator[Any]:
        labels: list[tuple[str, str]] = []
        values: dict[str, list[int]] = {"size": [], "logstartoffset": [], "logendoffset": []}
        for partition in self._replicas.all_partitions():
            topic, index = partition.topic_partition
            labels.append((topic, str(index)))
            values["size"].append(partition.log.size_bytes)
            values["logstartoffset"].append(partition.log.log_start_offset)
            values["logendoffset"].append(partition.log.log_end_offset)
        for name, column in values.items():
            family = gauge(f"kafka_log_log_{name}")
            for names, value in zip(labels, column, strict=True):
                family.add_metric(names, value)
            yield family


class _OneFamily(NamedTuple):
    """A collector of one family."""

    family: Metric

    def collect(self) -> tuple[Metric, ...]:
        return (self.family,)


def _pieces(family: Metric) -> Iterator[bytes]:
    """The text of a family, in pieces of `ROWS_AT_ONCE` samples."""
    samples = family.samples
    for start in range(0, max(len(samples), 1), ROWS_AT_ONCE):
        family.samples = samples[start : start + ROWS_AT_ONCE]
        text = generate_latest(_OneFamily(family))
        yield text.split(b"\n", 2)[2] if start else text  # HELP and TYPE are in the first piece


class MetricsServer:
    """Answers GET /metrics on the event loop.

    A connection has one request and its response, each within `LIMIT_S`, even if the client does
    not read. At `CONNECTIONS_MAX` connections, a new one replaces the oldest.
    """

    def __init__(
        self, collector: MetricsCollector, client_metrics: ClientMetrics, slices: SliceScheduler
    ) -> None:
        self.collector = collector
        self._client_metrics = client_metrics
        self._slices = slices
        self._bound: socket.socket | None = None
        self._accepts: AcceptLoop | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self.port = -1

    async def start(self, host: str, port: int) -> None:
        """Begin to accept. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._bound = socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
        self._bound.setblocking(False)
        self.port = self._bound.getsockname()[1]
        self._accepts = AcceptLoop("METRICS", self._bound, self._begin)
        self._accepts.start(CONNECTIONS_MAX)

    async def stop(self) -> None:
        if self._accepts is not None and self._bound is not None:
            self._accepts.close()
            self._bound.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _begin(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_REQUEST_BYTES_MAX, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted)
        except OSError:  # gone already
            accepted.close()
            return
        if len(self._tasks) >= CONNECTIONS_MAX:
            oldest = next(iter(self._tasks))
            del self._tasks[oldest]
            oldest.cancel()
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        task = loop.create_task(self._serve(reader, writer))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _page(self) -> bytes:
        """All metrics, written in slices: there may be many partitions and clients."""
        done: asyncio.Future[Completion[bytes]] = asyncio.get_running_loop().create_future()
        pending = self._slices.queue(self._write_page(), may_drop=True)
        pending.when_complete(done.set_result)
        try:
            page = await done
        finally:
            pending.abandon()
        if not isinstance(page, bytes):
            raise EOFError("the page could not be written")  # the scheduler has raised the reason
        return page

    def _write_page(self) -> Work[bytes]:
        parts: list[bytes] = []
        for family in self.collector.collect():
            for piece in _pieces(family):
                parts.append(piece)
                yield len(piece) // _FAMILY_CHARS_PER_UNIT
        for text in self._client_metrics.text():
            parts.append(text.encode())
            yield len(text) // _CLIENT_CHARS_PER_UNIT
        return b"".join(parts)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                request = await reader.readuntil(b"\r\n\r\n")
            path = request.split(b" ", 2)[1]
            found = path.split(b"?")[0] in (b"/metrics", b"/")
            body = await self._page() if found else b"try /metrics\n"
            status = b"200 OK" if found else b"404 Not Found"
            writer.transport.set_write_buffer_limits(0)  # `drain` waits until all is sent
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)
            )
            async with asyncio.timeout(LIMIT_S):
                await writer.drain()
            writer.close()
        except (TimeoutError, OSError, EOFError, IndexError, asyncio.LimitOverrunError):
            pass  # a scraper that went away, does not read, or does not speak HTTP
        finally:
            if not writer.is_closing():
                writer.transport.abort()


class BrokerMetrics(NamedTuple):
    """The metrics of clients, and the server of all metrics."""

    client_metrics: ClientMetrics
    server: MetricsServer

    async def start(self, config: KafkaConfig) -> None:
        """Serve the metrics. Raises OSError."""
        port = config.get_int("kafkapy.metrics.port")
        await self.server.start(config.get_str("kafkapy.metrics.host"), port)
        logger.info("Metrics on port %d", self.server.port)


def set_up_metrics(
    metrics: Metrics,
    replicas: ReplicaManager,
    sessions: FetchSessionCache,
    quotas: ClientQuotas,
    connections: ConnectionTable,
    controller: ControllerTask,
    max_lag: Callable[[], int],
    groups: GroupService,
    transactions: TransactionService,
    telemetry: ClientTelemetry,
    clock: Clock,
    slices: SliceScheduler,
) -> BrokerMetrics:
    """Create the metrics of these parts, and their server."""
    client_metrics = ClientMetrics(telemetry, clock)
    others = (
        ClusterMetrics(controller, replicas, metrics.zookeeper, max_lag),
        CoordinatorMetrics(groups, transactions),
        client_metrics,
    )
    collector = MetricsCollector(metrics, replicas, sessions, quotas, connections, clock, others)
    return BrokerMetrics(client_metrics, MetricsServer(collector, client_metrics, slices))
