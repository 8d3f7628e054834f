"""Changes of ISRs are counted as shrinks, expansions and failures."""

from __future__ import annotations

from kafkapy.server.replicas.isr_counts import IsrCounts


def test_isr_changes_are_told_apart_by_size() -> None:
    counts = IsrCounts()
    for before, after in ((3, 2), (2, 1), (1, 3), (3, 3)):
        counts.record_change(before, after)
    assert (counts.shrinks, counts.expands, counts.failed_updates) == (2, 1, 0)
