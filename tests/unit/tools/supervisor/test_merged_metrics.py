"""Metrics of several brokers in one text, which tells them apart."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy.tools.supervisor.merged_metrics import MergedMetricsServer, fetched, merged, total
from tests.harness.processes.broker_process import free_port

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
    families = {family.name: family for family in merged({0: ONE, 2: TWO})}
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


def test_a_broker_that_ends_in_its_answer_has_none() -> None:
    def half(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nlag 1.0\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=half, args=(listener,))
        answering.start()
        assert fetched(listener.getsockname()[1]) == ""
        answering.join()


def test_one_address_serves_what_the_brokers_serve() -> None:
    ports: dict[int, int] = {}
    inner = MergedMetricsServer("127.0.0.1", 0, dict)
    outer = MergedMetricsServer("127.0.0.1", 0, lambda: ports)
    try:
        ports[0] = inner.port
        ports[1] = free_port()  # of a broker that is away
        assert list(text_string_to_metric_families(fetched(outer.port))) == []
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{outer.port}/other")
    finally:
        outer.close()
        inner.close()
