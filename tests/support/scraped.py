"""What Prometheus would read of a collector's families."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


def scrape(collector: Any) -> dict[str, float]:
    """Samples as `name label=value ...`, without the `kafka_` that all of them begin with."""
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    return {
        sample.name.removeprefix("kafka_") + "".join(f" {k}={v}" for k, v in sample.labels.items()):
            sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }  # fmt: skip
