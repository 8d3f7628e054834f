"""Dashboards made for Kafka's JMX exporter find their numbers here, over plain HTTP."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.common.errors import LogDirFailure
from kafkapy.coordinator.groups.messages import CommitOffsets, OffsetToCommit
from kafkapy.server.counts.metric_table import CONTROLLER_EVENTS
from kafkapy.server.observability import metrics_server
from kafkapy.server.requests.turns import STEP_UNITS_MAX
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import batch, partition_state

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "a", tmp_path / "b")


def ask(parts: Parts, request: bytes) -> bytes:
    """The bytes that the server sends until it closes the connection."""

    async def scenario() -> bytes:
        server = parts.metrics_server()
        await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write(request)
            writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
            await server.stop()

    return asyncio.run(scenario())


def scrape(parts: Parts) -> Samples:
    head, _, body = ask(parts, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    assert status == b"HTTP/1.1 200 OK"
    assert b"Content-Length: %d" % len(body) in headers
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def gauge(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def test_topics(parts: Parts) -> None:
    parts.apply_leader_and_isr(partition_state(), partition_state(topic="u"))
    parts.metrics.count_append("t", 3, 100)
    parts.metrics.count_append("u", 1, 10)
    parts.metrics.count_fetch("t", 70)
    parts.metrics.count_failed_fetch("nowhere")
    samples = scrape(parts)
    prefix = "kafka_server_brokertopicmetrics_"
    for name, t, everything in (
        ("messagesin", 3, 4),
        ("bytesin", 100, 110),
        ("bytesout", 70, 70),
        ("totalproducerequests", 1, 2),
        ("totalfetchrequests", 1, 1),
        ("failedproducerequests", 0, 0),
        ("failedfetchrequests", 0, 1),
    ):
        assert gauge(samples, f"{prefix}{name}_total", topic="t") == t
        assert gauge(samples, f"{prefix}{name}_total", topic="") == everything


def test_a_topic_that_is_not_here_any_more_counts_in_the_sum_alone(parts: Parts) -> None:
    """Else each topic that there ever was would cost seven lines of every answer."""
    parts.apply_leader_and_isr(partition_state())
    parts.metrics.count_append("t", 3, 100)
    parts.metrics.count_append("deleted", 1, 10)
    parts.metrics.count_failed_fetch("nowhere")
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    for _ in range(2):
        samples = scrape(parts)
        assert gauge(samples, name, topic="t") == 3
        assert gauge(samples, name, topic="") == 4
        assert (name, (("topic", "deleted"),)) not in samples
    assert set(parts.metrics.topics) == {"t", ""}


def test_requests(parts: Parts) -> None:
    for _ in range(2):
        parts.metrics.requests.observe("Fetch", 0.25)
    samples = scrape(parts)
    prefix = "kafka_network_requestmetrics_"
    assert gauge(samples, f"{prefix}requests_total", request="Fetch") == 2
    assert gauge(samples, f"{prefix}localtimems_count", request="Fetch") == 2
    assert gauge(samples, f"{prefix}localtimems_sum", request="Fetch") == 500
    for q in ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999"):
        assert gauge(samples, f"{prefix}localtimems", request="Fetch", quantile=q) == 250


def test_replicas_and_logs(parts: Parts, tmp_path: Path) -> None:
    """Directory a has t-0 and t-2, directory b the others, and b fails."""
    parts.lead(index=0, replicas=(1, 2))
    parts.lead(index=1)
    parts.apply_leader_and_isr(partition_state(2, (2, 1), partition=2), partition_state(topic="u"))
    parts.replicas.append("t", 0, batch(3), 1, 11)
    parts.replicas.get("t", 0).delete_records(2)
    parts.replicas.log_dir_failed(LogDirFailure(str(tmp_path / "b"), "broken"))
    samples = scrape(parts)
    prefix = "kafka_server_replicamanager_"
    assert gauge(samples, f"{prefix}partitioncount") == 2
    assert gauge(samples, f"{prefix}leadercount") == 1
    assert gauge(samples, f"{prefix}underreplicatedpartitions") == 1
    assert gauge(samples, f"{prefix}underminisrpartitioncount") == 0
    assert gauge(samples, f"{prefix}offlinereplicacount") == 2
    assert gauge(samples, "kafka_log_logmanager_offlinelogdirectorycount") == 1
    where = {"topic": "t", "partition": "0"}
    assert gauge(samples, "kafka_log_log_size", **where) == len(batch(3))
    assert gauge(samples, "kafka_log_log_logstartoffset", **where) == 2
    assert gauge(samples, "kafka_log_log_logendoffset", **where) == 3
    assert gauge(samples, "kafka_log_log_logendoffset", topic="t", partition="2") == 0


def test_a_leader_without_enough_replicas(parts: Parts) -> None:
    parts.apply_leader_and_isr(partition_state(isr=(1,), replicas=(1, 2)), min_insync_replicas="2")
    assert gauge(scrape(parts), "kafka_server_replicamanager_underminisrpartitioncount") == 1


def test_the_clusters_numbers_are_there_too(parts: Parts) -> None:
    samples = scrape(parts)
    assert gauge(samples, "kafka_controller_kafkacontroller_activecontrollercount") == 0
    assert gauge(samples, "kafka_server_replicamanager_isrshrinks_total") == 0
    connections = "kafka_server_socketservermetrics_connection_count"
    assert gauge(samples, connections, listener="PLAINTEXT") == 0


def test_groups_sessions_and_waiting_requests(parts: Parts) -> None:
    parts.coordinate(isr=(1, 2))
    parts.metrics.broker_state = 3
    coordinator = parts.groups.coordinator
    commit = CommitOffsets("g", {partition_state().topic_partition: OffsetToCommit(5)})
    parts.groups.call(coordinator.commit_offsets, commit, lambda result: result)
    samples = scrape(parts)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert gauge(samples, purgatory, delayedoperation="Produce") == 1
    assert gauge(samples, purgatory, delayedoperation="Fetch") == 0
    assert gauge(samples, "kafka_server_kafkaserver_brokerstate") == 3
    assert gauge(samples, "kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
    for name in ("numincrementalfetchsessions", "numincrementalfetchpartitionscached"):
        assert gauge(samples, f"kafka_server_fetchsessioncache_{name}") == 0


def test_clients_are_served_while_a_page_of_many_metrics_is_written(parts: Parts) -> None:
    for number in range(300):
        parts.metrics.requests.observe(f"Api{number}", 0.25)
    server = parts.metrics_server()

    async def scenario() -> tuple[bytes, int]:
        writing = asyncio.create_task(server._page())
        turns = 0
        while not writing.done():
            await asyncio.sleep(0)
            turns += 1
        server._slices.close()
        return await writing, turns

    page, turns = asyncio.run(scenario())
    assert page == generate_latest(server.collector)
    assert page.count(b'request="Api299"') == 9
    assert turns > len(page) // 50_000
    assert server._slices.units_max < STEP_UNITS_MAX


def test_what_happens_between_two_slices_does_not_end_a_page(parts: Parts) -> None:
    parts.lead(index=0)
    parts.metrics.zookeeper.set_state("CONNECTED")
    first, second, *_ = CONTROLLER_EVENTS
    parts.controller.event_times.observe(first, 0.25)
    for family in parts.metrics_server().collector.collect():
        parts.metrics.requests.observe(family.name, 0.25)
        parts.metrics.count_append(family.name, 1, 10)
        if first.lower() in family.name:
            parts.controller.event_times.observe(second, 0.25)


def test_a_page_that_cannot_be_written_closes_the_connection(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(metrics_server, "generate_latest", fail)
    assert ask(parts, b"GET /metrics HTTP/1.1\r\n\r\n") == b""


def test_other_paths_are_told_where_to_look(parts: Parts) -> None:
    answer = ask(parts, b"GET /other HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert answer.endswith(b"\r\n\r\ntry /metrics\n")
    assert ask(parts, b"GET /metrics?name[]=x HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("request_bytes", [b"", b"GET /met", b"\r\n\r\n", b"x" * 100_000])
def test_what_is_not_http_is_hung_up_on(parts: Parts, request_bytes: bytes) -> None:
    assert ask(parts, request_bytes) == b""


def test_who_does_not_read_is_closed(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "LIMIT_S", 0.2)
    began = asyncio.Event()

    async def page() -> bytes:
        began.set()
        return bytes(50_000_000)

    async def scenario() -> int:
        server = parts.metrics_server()
        monkeypatch.setattr(server, "_page", page)
        await server.start("127.0.0.1", 0)
        reader = socket.create_connection(("127.0.0.1", server.port))
        reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        await began.wait()
        await asyncio.gather(*server._tasks)
        got = 0
        with reader:
            reader.settimeout(30)
            try:
                while part := reader.recv(1 << 20):
                    got += len(part)
            except ConnectionResetError:
                pass
        await server.stop()
        return got

    assert asyncio.run(scenario()) < 50_000_000


def test_one_connection_too_many_takes_the_place_of_the_oldest(parts: Parts) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        server = parts.metrics_server()
        await server.start("127.0.0.1", 0)
        oldest, *others = [
            await asyncio.open_connection("127.0.0.1", server.port)
            for _ in range(metrics_server.CONNECTIONS_MAX)
        ]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /other HTTP/1.1\r\n\r\n")
        found = await reader.read(), await oldest[0].read()
        for _, each in (oldest, *others, (reader, writer)):
            each.close()
        await server.stop()
        return found

    answer, nothing = asyncio.run(scenario())
    assert answer.endswith(b"try /metrics\n")
    assert nothing == b""
