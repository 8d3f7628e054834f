"""A scenario: the shape of a cluster and its load, the faults, and the assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.harness.faults import chaos_run
from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Verdict, Workload
from tests.harness.faults.fault_cluster import FaultCluster, wait_until

CONTROLLER_LIMIT_S = 30.0
PATIENT = {"zookeeper.session.timeout.ms": "18000"}
"""Kafka's default, for tests that kill no broker on a machine that may be busy."""

Faults = Callable[[FaultCluster, Workload], Iterator[str]]


@dataclass(frozen=True)
class Scenario:
    """One scenario, with its cluster.

    `faults` yields the faults that it injected, and raises AssertionError if a condition does not
    hold. The brokers of the ids in `apache` are Apache Kafka's; with `own_zookeeper`, the ZooKeeper
    is kafkapy's. With `bad_disks`, disks can have faults.
    """

    faults: Faults
    brokers: int = 3
    rf: int = 3
    min_isr: int = 2
    partitions: int = PARTITIONS
    rate: float = 400.0
    client_links: bool = False
    log_dirs: int = 1
    overrides: Mapping[str, str] = field(default_factory=dict)
    apache: tuple[int, ...] = ()
    own_zookeeper: bool = False
    workload: type[Workload] = Workload
    bad_disks: bool = False

    def run(self, directory: Path) -> Verdict:
        """Run on a cluster of its own. Returns the verdict on the records."""
        with FaultCluster(
            directory,
            self.brokers,
            self.overrides,
            client_links=self.client_links,
            log_dirs=self.log_dirs,
            apache=self.apache,
            own_zookeeper=self.own_zookeeper,
            bad_disks=self.bad_disks,
        ) as cluster:
            return chaos_run.run_on(
                cluster,
                self.faults,
                rf=self.rf,
                min_isr=self.min_isr,
                rate=self.rate,
                partitions=self.partitions,
                kind=self.workload,
            )


def in_turn(*scenarios: Scenario) -> Scenario:
    """Scenarios of one shape, on one cluster."""
    first = scenarios[0]
    assert all(replace(scenario, faults=first.faults) == first for scenario in scenarios)

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        for scenario in scenarios:
            yield from scenario.faults(cluster, workload)
            cluster.heal_links()
            cluster.wait_for_full_isr()

    return replace(first, faults=faults)


def leader(cluster: FaultCluster) -> int:
    """Id of the leader of the load's first partition; -1 if it has none."""
    return cluster.leader(TOPIC, 0)


def controller(cluster: FaultCluster) -> int:
    """Id of the controller; waits until there is one."""
    found: list[int] = []

    def lacking() -> list[str]:
        found[:] = [i for i in [cluster.controller_id()] if i is not None]
        return [] if found else ["nobody is controller"]

    wait_until(lacking, CONTROLLER_LIMIT_S, "no controller")
    return found[0]


AIMS: Mapping[str, Callable[[FaultCluster], int]] = {"leader": leader, "controller": controller}
