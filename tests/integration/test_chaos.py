"""A minute or two of chaos: ten faults, aimed by a seed (scripts/chaos runs all faults, for as long
as you choose)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Workload
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.faults.faults import Chaos
from tests.harness.faults.scenario import Scenario

SEED = 98280
RATE = 200.0
EACH = (
    *("kill-leader", "pause-controller", "half-open", "bounce-leader", "expire-controller"),
    *("isolate", "zk-cut", "kill-all", "zk-restart", "reassign"),
)
"""Deaths, stops for longer than a session, links cut and half-open, ZooKeeper away, an operator."""


def test_acknowledged_records_survive_faults(tmp_path: Path) -> None:
    """Nothing acknowledged is lost or doubled, readers see all in order, replicas are equal."""

    def faults(cluster: FaultCluster, _: Workload) -> Iterator[str]:
        return Chaos(cluster, TOPIC, PARTITIONS, SEED).run_each(EACH)

    verdict = Scenario(faults, rate=RATE).run(tmp_path)
    assert verdict.clean, f"seed {SEED}: {verdict.faults}\n{verdict.text()}"
    assert len(verdict.faults) == len(EACH)
