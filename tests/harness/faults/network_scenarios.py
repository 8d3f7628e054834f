"""Records go from producers to consumers over a network that is partitioned or slow.

round_trip_fault_test: a broker isolated from all others, a broker stopped with SIGSTOP, clients
isolated from the brokers, a slow network; and network_degrade_test, which measures the links that
the other scenarios use.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

from tests.harness.faults.chaos_run import Workload
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.faults.faults import while_paused
from tests.harness.faults.links import ANYONE, Network, Pace, Trouble
from tests.harness.faults.scenario import Scenario, leader
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.waiting import join

LIMIT_S = 600.0


def round_trip(records: int, rate: float) -> Scenario:
    """No fault: `records` records are written and acknowledged."""

    def faults(_: FaultCluster, workload: Workload) -> Iterator[str]:
        workload.wait_for_progress(records, LIMIT_S)
        yield f"{records} records"

    return Scenario(faults, rate=rate, client_links=True)


def broker_parted(records: int, rate: float) -> Scenario:
    """A leader is isolated from the other brokers, from ZooKeeper and from clients."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        alone = leader(cluster)
        network, pid = cluster.network, cluster.brokers[alone].pid
        for link in cluster.internal.values():
            network.set(link, Trouble.HOLD, pid)
        for links in (cluster.internal, cluster.to_zookeeper, cluster.clients):
            network.set(links[alone], Trouble.HOLD, ANYONE)
        workload.wait_for_progress(records, LIMIT_S)
        cluster.heal_links()
        yield f"broker {alone} parted for {records} records"

    return Scenario(faults, rate=rate, client_links=True)


def broker_paused(records: int, rate: float) -> Scenario:
    """A leader is stopped with SIGSTOP."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        at = leader(cluster)
        while_paused(cluster.brokers[at], lambda: workload.wait_for_progress(records, LIMIT_S))
        yield f"broker {at} stopped for {records} records"

    return Scenario(faults, rate=rate, client_links=True)


def clients_parted(records: int, rate: float, seconds: float) -> Scenario:
    """Nothing passes between clients and brokers for a while."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        for link in cluster.clients.values():
            cluster.network.set(link, Trouble.HOLD)
        threading.Event().wait(seconds)
        cluster.heal_links()
        workload.wait_for_progress(records, LIMIT_S)
        yield f"clients parted for {seconds:.0f} s"

    return Scenario(faults, rate=rate, client_links=True)


def slow_network(records: int, rate: float, pace: Pace) -> Scenario:
    """Every link has latency and little bandwidth: brokers, ZooKeeper and clients."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        for link in cluster.links():
            cluster.network.degrade(link, pace)
        workload.wait_for_progress(records, LIMIT_S)
        cluster.heal_links()
        yield f"{records} records at {pace}"

    return Scenario(faults, rate=rate, client_links=True)


def echo_time(pace: Pace, size: int) -> float:
    """Seconds that `size` bytes take to an echo and back over a link of this pace."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server, Network() as network:
        echo = threading.Thread(target=_echo_once, args=(server,), daemon=True)
        echo.start()
        port = free_port()
        link = network.link(port, server.getsockname()[1])
        network.degrade(link, pace)
        with closing(socket.create_connection(("127.0.0.1", port))) as client:
            start = time.monotonic()
            sender = threading.Thread(target=client.sendall, args=(bytes(size),))
            sender.start()
            left = size
            while left:
                left -= len(client.recv(65536))
            join(sender)
            return time.monotonic() - start


def _echo_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)
