"""A share fetch reads what its member can acquire, and not all that its client would take."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.replication.shares.share_partition import ShareLimits, SharePartition
from kafkapy.server.coordinators import share_fetches
from kafkapy.server.coordinators.share_fetches import (
    ShareFetches,
    ShareFetchParams,
    ShareFetchPartition,
    ShareRow,
)
from kafkapy.server.coordinators.share_partitions import LeaderSharePartition
from kafkapy.storage.file_records import FileRecords
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.legacy_messages import message_set, wrapper
from tests.harness.storage.partitions import TOPIC_ID

WANTED = ShareFetchPartition(SharePartitionKey("g", TOPIC_ID, 0), "t")
LARGEST = 50 << 20
"""What clients allow for."""
_LENGTH_AT, _LAST_OFFSET_DELTA_AT = 8, 23


class Fetches:
    """A share partition whose log has batches of 10 records of 1 kB."""

    def __init__(self, parts: Parts, monkeypatch: pytest.MonkeyPatch, batches: int = 30) -> None:
        self.partition = partition = parts.lead(isr=(1,), replicas=(1,))
        batch = build_batch([RecordData(None, b"x" * 1000, 1)] * 10)
        for _ in range(batches):
            parts.replicas.append("t", 0, batch, 1, 11)
        self.batch_bytes = len(batch)
        self.leader_share = LeaderSharePartition(WANTED.key, partition)
        self.leader_share.shares = self.shares = SharePartition(ShareLimits())
        shares: Any = SimpleNamespace(
            find=lambda key, of: self.leader_share,
            set_timer=lambda leader_share: None,
            take_error=self._take_error,
        )
        configs: Any = SimpleNamespace(isolation=lambda group_id: 0)
        self.fetches = ShareFetches(parts.replicas, shares, configs, parts.clock)
        self.read_bytes = 0
        self.errors: list[ErrorCode] = []
        read = FileRecords.read

        def counted(records: FileRecords, position: int, size: int) -> bytes:
            self.read_bytes += size
            return read(records, position, size)

        monkeypatch.setattr(FileRecords, "read", counted)
        monkeypatch.setattr(share_fetches, "_CHUNK_BYTES", 3 * self.batch_bytes)

    def _take_error(self, leader_share: LeaderSharePartition) -> ErrorCode:
        error, leader_share.error = leader_share.error, ErrorCode.NONE
        return error

    def fetch(self, max_records: int, max_bytes: int = LARGEST, member: str = "m") -> list[int]:
        """The base offsets of the batches that a member gets."""
        answers: list[ShareRow] = []
        params = ShareFetchParams(member, 0, 1, max_bytes, max_records, 500)
        self.fetches.fetch(params, [WANTED], lambda _: ErrorCode.NONE, answers.extend)
        self.errors = [row.error for row in answers if row.error is not ErrorCode.NONE]
        return [header.base_offset for row in answers for _, header in iter_headers(row.records)]

    def acquired(self, member: str = "m") -> int:
        runs = self.shares._records.runs
        return sum(r.last - r.first + 1 for r in runs if r.delivery.member_id == member)


@pytest.fixture
def fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetches:
    return Fetches(Parts(tmp_path), monkeypatch)


def test_a_member_that_allows_for_more_costs_no_more(fetches: Fetches) -> None:
    """Each fetch read 50 MB, for 22 ms, of which the member got 500 records."""
    assert fetches.fetch(20) == [0, 10]
    assert fetches.read_bytes < 5 * fetches.batch_bytes
    assert fetches.fetch(20) == [20, 30]
    assert fetches.read_bytes < 10 * fetches.batch_bytes


def test_it_reads_on_until_the_member_has_enough(fetches: Fetches) -> None:
    """Its records lie in several chunks, whose last batches are not whole."""
    assert fetches.fetch(75) == [*range(0, 80, 10)]
    assert fetches.acquired() == 80
    assert fetches.fetch(1000) == [*range(80, 300, 10)]


def test_it_reads_past_what_others_have(fetches: Fetches) -> None:
    """Offsets 10 to 49 are another member's: more than a chunk."""
    fetches.fetch(10)
    fetches.fetch(40, member="other")
    change = fetches.shares.release("m")
    assert change is not None
    fetches.shares.complete_change(change)
    assert fetches.fetch(30) == [*range(0, 70, 10)]
    assert fetches.acquired() == 30
    assert fetches.acquired("other") == 40


def test_one_fetch_gets_an_error_of_loading_and_the_next_ones_wait(fetches: Fetches) -> None:
    fetches.leader_share.shares = None
    fetches.leader_share.error = ErrorCode.UNKNOWN_SERVER_ERROR
    fetches.fetch(1000)
    assert fetches.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    answers: list[ShareRow] = []
    params = ShareFetchParams("m", 500, 1, LARGEST, 1000, 500)
    waiting = fetches.fetches.fetch(params, [WANTED], lambda _: ErrorCode.NONE, answers.extend)
    assert waiting is not None
    assert not answers


@pytest.mark.parametrize("position", [_LENGTH_AT, _LENGTH_AT + 2, _LAST_OFFSET_DELTA_AT, 500])
def test_records_of_a_damaged_batch_are_not_acquired(
    fetches: Fetches, tmp_path: Path, position: int
) -> None:
    """One bit more in a last offset, and members had locks on 16 million records."""
    [log] = tmp_path.rglob("*.log")
    data = bytearray(log.read_bytes())
    data[2 * fetches.batch_bytes + position] ^= 1
    log.write_bytes(data)
    assert fetches.fetch(1000) == [0, 10]
    assert fetches.acquired() == 20
    assert not fetches.fetch(1000)
    assert fetches.errors == [ErrorCode.CORRUPT_MESSAGE]


def test_a_last_batch_that_is_too_long_is_an_error(fetches: Fetches, tmp_path: Path) -> None:
    """The member would wait for the rest of it."""
    [log] = tmp_path.rglob("*.log")
    data = bytearray(log.read_bytes())
    data[29 * fetches.batch_bytes + _LENGTH_AT] ^= 1
    log.write_bytes(data)
    assert len(fetches.fetch(1000)) == 29
    assert not fetches.fetch(1000)
    assert fetches.errors == [ErrorCode.CORRUPT_MESSAGE]


def test_all_messages_of_a_compressed_set_from_before_0_11_are_acquired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group got the last one only, and none of the others later."""
    fetches = Fetches(Parts(tmp_path), monkeypatch, batches=0)
    log = fetches.partition.log
    log.append_as_follower(wrapper(1, Codec.GZIP, message_set(1, [0, 1, 2]), offset=2), NOW_MS)
    log.append_as_follower(wrapper(1, Codec.GZIP, message_set(1, [0, 1]), offset=4), NOW_MS)
    log.update_high_watermark(5)
    fetches.fetch(1000)
    assert fetches.acquired() == 5
    assert fetches.shares.start_offset == 0


def test_the_limit_of_bytes_holds_across_chunks(fetches: Fetches) -> None:
    assert fetches.fetch(1000, max_bytes=5 * fetches.batch_bytes) == [*range(0, 50, 10)]
    assert fetches.fetch(1000, max_bytes=4 * fetches.batch_bytes - 1) == [50, 60, 70]
    assert fetches.fetch(1000, max_bytes=1) == [80], "one batch always"


def test_share_partitions_that_change_under_a_waiting_fetch_are_checked_one_by_one(
    tmp_path: Path,
) -> None:
    """Each change checked all partitions of the fetch. The first fetch of 1,000 empty partitions
    stopped the broker for seconds, when all of them had been loaded."""
    parts = Parts(tmp_path)
    partitions = [parts.lead(index=index, isr=(1,), replicas=(1,)) for index in range(20)]
    keys = [WANTED.key._replace(partition=index) for index in range(20)]
    loaded = {key: LeaderSharePartition(key, partitions[key.partition]) for key in keys}
    looked_up: list[SharePartitionKey] = []

    def find(key: SharePartitionKey, partition: object) -> LeaderSharePartition:
        looked_up.append(key)
        return loaded[key]

    shares: Any = SimpleNamespace(find=find, set_timer=lambda leader_share: None)
    configs: Any = SimpleNamespace(isolation=lambda group_id: 0)
    fetches = ShareFetches(parts.replicas, shares, configs, parts.clock)
    answers: list[list[ShareRow]] = []
    params = ShareFetchParams("m", 500, 1, LARGEST, 100, 500)
    plan = [ShareFetchPartition(key, "t") for key in keys]
    assert fetches.fetch(params, plan, lambda _: ErrorCode.NONE, answers.append) is not None
    looked_up.clear()
    for key in keys:
        loaded[key].shares = SharePartition(ShareLimits())
        parts.replicas.fetch_purgatory.check(key)
    assert looked_up == keys
    assert not answers
    parts.replicas.append("t", 7, build_batch([RecordData(None, b"v", 1)]), 1, 11)
    [[row]] = answers
    assert row.wanted.key == keys[7]
