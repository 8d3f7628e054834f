"""Findings in Kafka's order and words."""

from __future__ import annotations

from kafkapy.tools.dump.findings import (
    INDEX_MISMATCH,
    NON_CONSECUTIVE,
    NOT_FOUND,
    OUT_OF_ORDER,
    TIMESTAMP_MISMATCH,
    Findings,
)


def test_order_and_text() -> None:
    findings = Findings()
    assert not findings
    for pair in ((1, 2), (3, 5)):
        findings.add(NON_CONSECUTIVE, "/a.log", pair)
        findings.add(NOT_FOUND, "/a.timeindex", pair)
        findings.add(OUT_OF_ORDER, "/a.timeindex", pair)
        findings.add(TIMESTAMP_MISMATCH, "/a.timeindex", pair)
        findings.add(INDEX_MISMATCH, "/a.index", pair)
    assert findings
    assert list(findings.lines()) == [
        "Mismatches in :/a.index",
        "  Index offset: 3, log offset: 5",
        "  Index offset: 1, log offset: 2",
        "Found timestamp mismatch in :/a.timeindex",
        "  Index timestamp: 1, log timestamp: 2",
        "  Index timestamp: 3, log timestamp: 5",
        "Found out of order timestamp in :/a.timeindex",
        "  Index timestamp: 1, Previously indexed timestamp: 2",
        "  Index timestamp: 3, Previously indexed timestamp: 5",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 1, found log offset: 2",
        "Indexed offset: 3, found log offset: 5",
        "Non-consecutive offsets in /a.log",
        "  3 is followed by 5",
        "  1 is followed by 2",
    ]
    assert list(findings.objects())[-1] == {
        "kind": "finding",
        "finding": "non_consecutive_offsets",
        "path": "/a.log",
        "offset": 3,
        "next_offset": 5,
    }
