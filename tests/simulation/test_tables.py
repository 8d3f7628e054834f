"""The checker of tables finds a row that compaction lost, and excuses one in an accepted gap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch, rebuild_batch
from tests.harness.faults.anomalies import Outcome, Send
from tests.simulation.checkers.base import Violation
from tests.simulation.checkers.tables import Tables
from tests.simulation.cluster import TABLE
from tests.simulation.tables import row_of

VALUES = [10, 11, 15, 20, 23, 30]
"""The offset of each is its index; 11, 15 and 23 have the same key."""


class Log:
    """A log with the records at some offsets, one per batch."""

    log_start_offset = 0

    def __init__(self, offsets: list[int], end: int) -> None:
        self.log_end_offset = end
        self.topic_partition = TopicPartition(TABLE, 0)
        self.batches = [
            build_batch([RecordData(*row_of(VALUES[offset]), 1)], base_offset=offset)
            for offset in offsets
        ]

    @property
    def log(self) -> Log:
        """This class is also the partition."""
        return self

    def read(self, position: int, *_: object) -> Any:
        headers = [next(iter_headers(batch))[1] for batch in self.batches]
        found = (b for b, h in zip(self.batches, headers, strict=True) if h.base_offset >= position)
        return SimpleNamespace(records=next(found, b""))


def check(log: Log, may_have_gaps: bool) -> None:
    sends = [Send(0, value, Outcome.ACKED, offset) for offset, value in enumerate(VALUES)]
    cluster: Any = SimpleNamespace(
        may_have_gaps=may_have_gaps,
        assignment=lambda at: (1,),
        history=SimpleNamespace(judged=lambda topic: SimpleNamespace(sends=sends)),
        world=SimpleNamespace(
            nodes={1: SimpleNamespace(broker_id=1, partitions=lambda: [log])},
            counts={"keys of compacted topics": 0},
        ),
    )
    Tables(cluster).on_end()


def test_compaction_keeps_the_last_row_of_each_key() -> None:
    check(Log([0, 3, 4, 5], 6), may_have_gaps=False)


@pytest.mark.parametrize("offsets", [[0, 1, 2, 3, 5], [0, 3, 4]])
def test_a_row_in_an_accepted_gap_is_excused(offsets: list[int]) -> None:
    """Seed 24165385: a power cut took the end of a closed segment, and the broker had lost its
    recovery checkpoint. The segment after it may be empty."""
    check(Log(offsets, 6), may_have_gaps=True)
    with pytest.raises(Violation, match="was set to"):
        check(Log(offsets, 6), may_have_gaps=False)


def test_a_row_behind_the_end_is_not_in_a_gap() -> None:
    with pytest.raises(Violation, match="b'once-30' was set to b'30' at offset 5"):
        check(Log([0, 3, 4], 5), may_have_gaps=True)


def test_a_row_that_compaction_took_out_of_its_batch_is_not_in_a_gap() -> None:
    log = Log([0, 3, 4, 5], 6)
    [(_, header)] = iter_headers(log.batches[2])
    log.batches[2] = rebuild_batch(header, [])
    with pytest.raises(Violation, match="b'often-3' was set to b'23' at offset 4"):
        check(log, may_have_gaps=True)
