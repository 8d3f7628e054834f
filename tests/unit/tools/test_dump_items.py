"""Lines of items that no recorded file has."""

from __future__ import annotations

from kafkapy.tools.dump_items import ProducerState, SnapshotStart, optional_long


def test_a_producer_whose_last_batch_is_not_known() -> None:
    state = ProducerState(5, 1, -1, 40, 1000, None, None, None, None, None)
    assert state.text() == (
        "producerId: 5 producerEpoch: 1 coordinatorEpoch: -1"
        " currentTxnFirstOffset: OptionalLong[40] lastTimestamp: 1000 "
    )


def test_a_kraft_snapshot() -> None:
    assert SnapshotStart(10, 3).text() == "Snapshot end offset: 10, epoch: 3"
    assert optional_long(None) == "OptionalLong.empty"
