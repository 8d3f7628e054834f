"""first_connection: a task waits for brokers that restart, not for those that refuse it."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.first_connection import await_broker
from kafkapy.client.transport import network_error
from kafkapy.common.errors import ApiError
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.scripted.stepped_time import SteppedTime


def test_the_task_of_a_new_process_waits_for_the_only_bootstrap_server() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    is_up = iter([False, False, True])

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        scripted.refuse = set() if next(is_up) else {port}
        return scripted.connect(host, port, security, timeout_s)

    cluster = Cluster("b:9092", connector=connect)
    await_broker(cluster, 60_000)
    assert cluster.metadata([]).cluster_id == "cluster"
    assert len(scripted.connections) == 1


def test_a_server_that_stays_away_is_named() -> None:
    scripted = ScriptedCluster({})
    scripted.refuse = {9092}
    with pytest.raises(ApiError, match=r"No bootstrap server can be reached.* b:9092 .*refused"):
        await_broker(Cluster("b:9092", connector=scripted.connect), 60_000)


def test_a_task_does_not_wait_for_a_server_that_it_does_not_trust() -> None:
    attempts = []

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        attempts.append(port)
        error = ssl.SSLCertVerificationError("self-signed certificate")
        raise network_error(host, port, error) from error

    with pytest.raises(ApiError, match="self-signed certificate"):
        await_broker(Cluster("b:9092", connector=connect), 60_000)
    assert attempts == [9092]


def test_servers_that_hang_are_not_waited_for_beyond_the_limit(stepped_time: SteppedTime) -> None:
    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        stepped_time.sleep(timeout_s)
        raise network_error(host, port, TimeoutError())

    begin_s = stepped_time.monotonic()
    with pytest.raises(ApiError, match="timed out"):
        await_broker(Cluster("b:1,b:2", connector=connect), 5000)
    assert stepped_time.monotonic() - begin_s < 8  # the connection timeout is 10 s for each
