"""The rows of `scripts/bench --kafka`."""

from __future__ import annotations

from collections import Counter

from dev.bench.kafka_rows import GROUPS
from dev.bench.kafka_scenarios import ALONE


def test_no_two_rows_have_one_name() -> None:
    """The figures of two would be one line, the median of both."""
    shared = [task for _, _, tasks in GROUPS for task in tasks]
    names = Counter(row.name for one in (*shared, *ALONE) for row in one.rows)
    assert [name for name, count in names.items() if count > 1] == []
