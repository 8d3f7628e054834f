"""Three minutes of chaos by one seed (scripts/chaos runs for half an hour)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.support.chaos_run import PARTITIONS, TOPIC, Workload
from tests.support.fault_cluster import FaultCluster
from tests.support.faults import FAULTS, Chaos
from tests.support.scenario import Scenario

# Its first sixteen faults are of every kind: kills of a leader, of the controller and of all, stops
# for longer than a session, restarts, links cut and half-open, expiry, ZooKeeper's restart.
SEED = 98280
SECONDS = 180.0


def test_acknowledged_records_survive_faults(tmp_path: Path) -> None:
    """Nothing acknowledged is lost or doubled, readers see all in order, replicas are equal."""

    def faults(cluster: FaultCluster, _: Workload) -> Iterator[str]:
        return Chaos(cluster, TOPIC, PARTITIONS, SEED).run_for(SECONDS, sorted(FAULTS))

    verdict = Scenario(faults).run(tmp_path)
    assert verdict.clean, f"seed {SEED}: {verdict.faults}\n{verdict.text()}"
