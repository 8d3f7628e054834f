"""The table of metrics names what brokers export, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.server.cluster.controller_task import TIMED_EVENTS
from kafkapy.server.counts.metric_table import CONTROLLER_EVENTS, METRICS, gauge
from kafkapy.server.observability.cluster_metrics import QUANTILES
from tests.harness.cores.server_parts import Parts


def test_the_controller_times_the_events_of_the_table() -> None:
    assert set(TIMED_EVENTS.values()) == set(CONTROLLER_EVENTS)


def test_a_broker_exports_every_metric_with_the_type_and_labels_of_its_row(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.metrics.zookeeper.set_state("CONNECTED")
    for event in CONTROLLER_EVENTS:
        parts.controller.event_times.observe(event, 0.1)
    families = {family.name: family for family in parts.metrics_server().collector.collect()}
    assert set(families) == set(METRICS)
    for name, family in families.items():
        row = METRICS[name]
        assert (family.type, family._labelnames) == (row.kind, row.labels), name
        assert family.documentation == row.meaning


def test_a_name_without_a_row_is_refused() -> None:
    with pytest.raises(KeyError):
        gauge("kafka_server_unheard_of")


def test_summaries_have_kafkas_quantiles() -> None:
    assert QUANTILES == ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
