"""Lines of items that no recorded file has."""

from __future__ import annotations

from kafkapy.tools.dump.index_items import ProducerState


def test_a_producer_whose_last_batch_is_not_known() -> None:
    state = ProducerState(5, 1, -1, 40, 1000, None, None, None, None, None)
    assert state.text() == (
        "producerId: 5 producerEpoch: 1 coordinatorEpoch: -1"
        " currentTxnFirstOffset: OptionalLong[40] lastTimestamp: 1000 "
    )
