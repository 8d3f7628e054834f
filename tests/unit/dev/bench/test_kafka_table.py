"""Ratios in the table of `scripts/bench --kafka`."""

from __future__ import annotations

import os

import pytest

from dev.bench.kafka_meter import Usage
from dev.bench.kafka_rows import MB, Measured, Row
from dev.bench.kafka_systems import System
from dev.bench.kafka_table import Results

RATE = Row("produce", "MB/s")


def measured(rate: float, cpu_s: float, machine: float) -> Measured:
    """1 GB moved, by a broker that took `cpu_s` seconds of processor time for it."""
    return Measured([rate], Usage(cpu_s, 1, 0.0, 0.0, machine), 1000 * MB)


@pytest.mark.parametrize(("machine", "bound"), [(1.0, 2.0 / 0.8), (0.5, 2.0)])
def test_a_free_broker_is_faster_only_where_the_machine_was_busy(
    machine: float, bound: float
) -> None:
    a_fifth_s = 0.2 * (os.cpu_count() or 1) * 10  # of all processors, while 1 GB goes at 100 MB/s
    results = Results((System.KAFKAPY, System.APACHE))
    results.add(System.KAFKAPY, [RATE], measured(100, a_fifth_s, machine))
    results.add(System.APACHE, [RATE], measured(50, 5.0, machine))
    [line] = results.lines
    assert line.ratio == 2.0
    assert line.bound == pytest.approx(bound)
