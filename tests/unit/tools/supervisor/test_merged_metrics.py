"""Metrics of several brokers in one text, which tells them apart."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.tools.supervisor import merged_metrics
from kafkapy.tools.supervisor.merged_metrics import (
    CONNECTIONS_MAX,
    MergedMetricsServer,
    fetch_text,
    merge,
    total,
)
from tests.harness.plugins import unchecked
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.waiting import LIMIT_S

ONE = """# HELP messages_total Messages
# TYPE messages_total counter
messages_total{topic="t"} 3.0
# TYPE lag gauge
lag 1.0
"""
TWO = """# HELP messages_total Messages
# TYPE messages_total counter
messages_total{topic="t"} 4.0
"""


def test_each_sample_has_the_number_of_its_broker() -> None:
    families = {family.name: family for family in merge({0: ONE, 2: TWO})}
    assert [(s.labels, s.value) for s in families["messages"].samples] == [
        ({"process": "0", "topic": "t"}, 3.0),
        ({"process": "2", "topic": "t"}, 4.0),
    ]
    assert families["messages"].type == "counter"
    assert [(s.labels, s.value) for s in families["lag"].samples] == [({"process": "0"}, 1.0)]


def test_a_total_needs_all() -> None:
    """A broker that cannot be asked may lead partitions that lack replicas."""
    assert total([ONE, TWO], "messages_total") == 7
    assert total([ONE, TWO], "lag") is None
    assert total([ONE, ""], "messages_total") is None


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """The port of a broker that answers once."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]


def test_a_broker_that_ends_in_its_answer_has_none() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nlag 1.0\n") as port:
        assert fetch_text(port) == ""


def test_a_broker_is_asked_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy would look for the port on its own machine."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(urllib.request, "_opener", None)  # which would have the old environment
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nlag 1.0\n") as port:
        assert fetch_text(port) == "lag 1.0\n"


def test_one_address_serves_what_the_brokers_serve() -> None:
    ports: dict[int, int] = {}
    inner = MergedMetricsServer("127.0.0.1", 0, dict)
    outer = MergedMetricsServer("127.0.0.1", 0, lambda: ports)
    try:
        ports[0] = inner.port
        ports[1] = free_port()  # of a broker that is away
        assert list(text_string_to_metric_families(fetch_text(outer.port))) == []
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{outer.port}/other")
    finally:
        outer.close()
        inner.close()


def test_an_address_of_ipv6_is_one() -> None:
    """As `kafkapy.metrics.host` of a broker alone."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        unchecked.note("merged metrics at an IPv6 address", str(error))
        return
    server = MergedMetricsServer("::1", 0, dict)
    try:
        with urllib.request.urlopen(f"http://[::1]:{server.port}/metrics") as answer:
            assert answer.status == 200
    finally:
        server.close()


def test_clients_that_send_no_request_cannot_use_up_the_descriptors_of_the_supervisor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs some to start a broker that died. Each byte of a request extends the limit."""
    monkeypatch.setattr(merged_metrics, "LIMIT_S", 10 * LIMIT_S)
    server = MergedMetricsServer("127.0.0.1", 0, dict)
    idle: list[socket.socket] = []
    try:
        for _ in range(CONNECTIONS_MAX + 3):
            idle.append(socket.create_connection(("127.0.0.1", server.port), LIMIT_S))
            idle[-1].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert idle[0].recv(1) == b""  # closed, for one that is newer
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            assert answer.status == 200
    finally:
        for connection in idle:
            connection.close()
        server.close()


def test_many_requests_at_once_cannot_use_up_the_memory_of_the_supervisor() -> None:
    """Each fetches the metrics of all brokers."""
    is_open = threading.Event()
    started = threading.Semaphore(0)

    def ports() -> dict[int, int]:
        started.release()
        assert is_open.wait(LIMIT_S)
        return {}

    server = MergedMetricsServer("127.0.0.1", 0, ports)
    asking: list[socket.socket] = []
    try:
        for _ in range(CONNECTIONS_MAX):
            asking.append(socket.create_connection(("127.0.0.1", server.port), LIMIT_S))
            asking[-1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert started.acquire(timeout=LIMIT_S)
        with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as refused:
            assert refused.recv(1) == b""
        is_open.set()
        assert asking[0].recv(12) == b"HTTP/1.0 200"
    finally:
        is_open.set()
        for connection in asking:
            connection.close()
        server.close()


def test_a_client_that_disconnects_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    server = MergedMetricsServer("127.0.0.1", 0, dict)
    try:
        for error in (BrokenPipeError(), ValueError("a bug")):
            try:
                raise error
            except Exception:
                server._server.handle_error(None, ("127.0.0.1", 1))
    finally:
        server.close()
    printed = capsys.readouterr().err
    assert "BrokenPipeError" not in printed
    assert "a bug" in printed
