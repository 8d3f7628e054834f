"""Samples of metrics, as Prometheus reads them from a collector or a broker."""

from __future__ import annotations

import urllib.request
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.processes.waiting import LIMIT_S


def scrape(collector: Any) -> dict[str, float]:
    """Samples as `name label=value ...`, without the `kafka_` that all of them begin with."""
    registry = CollectorRegistry()
    registry.register(collector)
    return _samples(generate_latest(registry).decode())


def samples_of(port: int) -> dict[str, float]:
    """Samples of a broker whose metrics are served at a port of this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
        return _samples(answer.read().decode())


def _samples(text: str) -> dict[str, float]:
    return {
        sample.name.removeprefix("kafka_") + "".join(f" {k}={v}" for k, v in sample.labels.items()):
            sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }  # fmt: skip
