"""Three rounds of kill -9 under an idempotent producer (scripts/conformance --kill runs 20)."""

from __future__ import annotations

from tests.conformance import kill_rounds
from tests.conftest import BrokerFactory
from tests.harness.faults.lossy_proxy import LossyProxy


def test_acknowledged_records_survive_kill9(broker_factory: BrokerFactory) -> None:
    """Every acknowledged record is there, once, in order; the group resumes from its commits."""
    with LossyProxy() as proxy:
        overrides = {"log.segment.bytes": "1048576", **kill_rounds.advertised(proxy)}
        kill_rounds.run(broker_factory(overrides), proxy, "killed", rounds=3, seed=9)
