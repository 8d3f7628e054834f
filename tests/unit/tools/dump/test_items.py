"""Lines of items that no recorded file has."""

from __future__ import annotations

from kafkapy.tools.dump.items import SnapshotStart, optional_long


def test_a_kraft_snapshot() -> None:
    assert SnapshotStart(10, 3).text() == "Snapshot end offset: 10, epoch: 3"
    assert optional_long(None) == "OptionalLong.empty"
