"""A search by time is called again after each turn of the other thread, with the log of then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.server.replicas.time_search import TimeSearch, search_in_turns
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.header_count import HeaderCount


def test_a_search_continues_in_the_log_that_has_replaced_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one may be deleted while a thread searches. In the other one, records before the
    offset that was reached are found too."""
    parts = Parts(tmp_path)
    logs = [parts.lead().log, parts.lead(index=1).log]
    rows = [RecordData(None, b"v", timestamp) for timestamp in (5, 10)]
    parts.replicas.append("t", 0, build_batch(rows, codec=Codec.GZIP), 1, 11)
    parts.replicas.append("t", 1, build_batch(rows[1:]), 1, 11)
    turns: list[object] = []

    def find(search: TimeSearch) -> tuple[int, ...] | None:
        log = logs[len(turns)]
        turns.append(log)
        search.begin(log)
        return search.found or log.offset_for_timestamp(10, 9, search, search.start_offset)

    assert HeaderCount(monkeypatch).run(search_in_turns(find)) == (10, 0, 0)
    assert turns == logs
