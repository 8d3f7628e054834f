"""A fetch answers at once with enough, waits with too little, and never hides one row's error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.cluster_state import UpdateMetadataCommand
from kafkapy.common.errors import ErrorCode, LogDirFailure
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.awaited_followers import AWAIT_TIMEOUT_MS, SHORT_WAIT_MS
from kafkapy.replication.delayed_fetch import DelayedFetch, FetchParams
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.replica_selector import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from kafkapy.server.replicas.fetch_reader import FetchReader
from tests.harness.cores.server_parts import Parts
from tests.harness.plugins.closing import Disk
from tests.harness.scripted import admins
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.partitions import TOPIC_ID, batch, partition_state

BATCH_BYTES = len(batch())
MANY = 1 << 20
OTHER_ID = Uuid(bytes(15) + b"\7")


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path)
    made.lead()
    made.lead(index=1)
    return made


def row(index: int = 0, offset: int = 0, max_bytes: int = MANY, epoch: int = -1) -> FetchPartition:
    return FetchPartition("t", TOPIC_ID, index, offset, max_bytes, epoch)


class Fetch:
    """One fetch and its answer, once there is one."""

    def __init__(
        self,
        parts: Parts,
        *plan: FetchPartition,
        min_bytes: int = 1,
        max_bytes: int = MANY,
        max_wait_ms: int = 500,
        replica_id: int = -1,
    ) -> None:
        self.answers: list[list[FetchResult]] = []
        params = FetchParams(replica_id, max_wait_ms, min_bytes, max_bytes, 0, 17)
        self.parked: DelayedFetch | None = parts.fetch_reader.fetch(
            params, list(plan), self.answers.append
        )

    @property
    def rows(self) -> list[tuple[int, ErrorCode, list[int]]]:
        """(partition, error, base offsets of its batches) of the one answer."""
        [results] = self.answers
        return [
            (
                result.wanted.partition,
                ErrorCode(result.error),
                [header.base_offset for _, header in iter_headers(result.records)],
            )
            for result in results
        ]


def produce(parts: Parts, index: int = 0) -> None:
    parts.replicas.append("t", index, batch(), 1, 11)


def test_enough_bytes_are_answered_at_once_in_the_order_asked(parts: Parts) -> None:
    produce(parts, 0)
    produce(parts, 1)
    produce(parts, 1)
    fetch = Fetch(parts, row(1, 1), row(0), min_bytes=2 * BATCH_BYTES)
    assert fetch.parked is None
    assert fetch.rows == [(1, ErrorCode.NONE, [1]), (0, ErrorCode.NONE, [0])]


@pytest.mark.parametrize("replica_id", [-1, -2, -3, -(2**31)])
def test_nobody_but_a_replica_reads_beyond_the_high_watermark(
    parts: Parts, replica_id: int
) -> None:
    parts.lead(index=2, isr=(1, 2), replicas=(1, 2))
    produce(parts, 2)
    assert Fetch(parts, row(2), max_wait_ms=0, replica_id=replica_id).rows == [
        (2, ErrorCode.NONE, [])
    ]
    assert Fetch(parts, row(2), max_wait_ms=0, replica_id=2).rows == [(2, ErrorCode.NONE, [0])]


def test_too_few_bytes_wait_for_more_of_any_partition(parts: Parts) -> None:
    produce(parts, 0)
    fetch = Fetch(parts, row(0), row(1), min_bytes=2 * BATCH_BYTES)
    assert fetch.parked is not None
    assert fetch.answers == []
    assert parts.timers.delays_s == [0.5]
    produce(parts, 1)
    assert fetch.rows == [(0, ErrorCode.NONE, [0]), (1, ErrorCode.NONE, [0])]
    parts.clock.now_ms += 500
    parts.timers.fire()
    assert len(fetch.answers) == 1


def test_when_the_wait_is_over_it_answers_with_what_there_is(parts: Parts) -> None:
    produce(parts)
    fetch = Fetch(parts, row(), min_bytes=MANY)
    parts.clock.now_ms += 499
    parts.timers.fire()
    assert fetch.answers == []
    parts.clock.now_ms += 1
    parts.timers.fire()
    assert fetch.rows == [(0, ErrorCode.NONE, [0])]


def test_no_wait_and_no_partitions_mean_now(parts: Parts) -> None:
    assert Fetch(parts, row(), max_wait_ms=0).rows == [(0, ErrorCode.NONE, [])]
    assert Fetch(parts).answers == [[]]
    assert len(parts.replicas.fetch_purgatory) == 0


def test_partitions_share_the_byte_budget_but_the_first_batch_always_goes(parts: Parts) -> None:
    for index in (0, 0, 1):
        produce(parts, index)
    both = Fetch(parts, row(0), row(1), max_bytes=2 * BATCH_BYTES)
    assert both.rows == [(0, ErrorCode.NONE, [0, 1]), (1, ErrorCode.NONE, [])]
    tiny = Fetch(parts, row(0), row(1), max_bytes=1)
    assert tiny.rows == [(0, ErrorCode.NONE, [0]), (1, ErrorCode.NONE, [])]
    behind_an_empty_row = Fetch(parts, row(0, offset=2), row(1), max_bytes=1)
    assert behind_an_empty_row.rows == [(0, ErrorCode.NONE, []), (1, ErrorCode.NONE, [0])]
    assert Fetch(parts, row(0, max_bytes=BATCH_BYTES)).rows == [(0, ErrorCode.NONE, [0])]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (row(7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (FetchPartition("u", TOPIC_ID, 0, 0, MANY), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (FetchPartition(None, OTHER_ID, 0, 0, MANY), ErrorCode.UNKNOWN_TOPIC_ID),
        (FetchPartition(None, ZERO_UUID, 0, 0, MANY), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (FetchPartition("t", OTHER_ID, 0, 0, MANY), ErrorCode.INCONSISTENT_TOPIC_ID),
        (row(0, offset=2), ErrorCode.OFFSET_OUT_OF_RANGE),
        (row(0, offset=-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (row(0, offset=1, epoch=1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_an_error_is_its_rows_alone_and_does_not_wait(
    parts: Parts, wanted: FetchPartition, error: ErrorCode
) -> None:
    parts.announce("u", leader=2)
    produce(parts, 0)
    fetch = Fetch(parts, row(1), wanted, min_bytes=MANY)
    assert fetch.rows == [(1, ErrorCode.NONE, []), (wanted.partition, error, [])]
    assert fetch.answers[0][1].high_watermark == -1


def test_a_fetch_by_name_needs_no_topic_id(parts: Parts) -> None:
    produce(parts)
    by_name = FetchPartition("t", ZERO_UUID, 0, 0, MANY)
    assert Fetch(parts, by_name).rows == [(0, ErrorCode.NONE, [0])]


def test_a_row_without_a_name_reads_nothing_whatever_the_metadata_has(parts: Parts) -> None:
    """The handler resolves ids and then authorizes; here nobody would."""
    produce(parts)
    parts.announce("t")
    by_id = FetchPartition(None, TOPIC_ID, 0, 0, MANY)
    assert Fetch(parts, by_id).rows == [(0, ErrorCode.UNKNOWN_TOPIC_ID, [])]


def test_a_follower_that_parts_from_the_leader_is_told_where_at_once(parts: Parts) -> None:
    produce(parts)
    parts.lead(isr=(1, 2), leader_epoch=3, partition_epoch=1)
    produce(parts)
    wanted = FetchPartition("t", TOPIC_ID, 0, 2, MANY, 3, last_fetched_epoch=2)
    fetch = Fetch(parts, wanted, min_bytes=MANY, replica_id=2)
    [[result]] = fetch.answers
    assert result.diverging_epoch == (0, 1)
    assert result.records == b""


def test_a_followers_fetch_moves_the_high_watermark_and_wakes_consumers(parts: Parts) -> None:
    partition = parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    produce(parts)
    consumer = Fetch(parts, row())
    assert consumer.answers == []
    Fetch(parts, row(offset=1), replica_id=2)
    assert partition.log.high_watermark == 1
    assert consumer.rows == [(0, ErrorCode.NONE, [0])]


def test_a_follower_is_called_when_its_leader_begins_to_lead(parts: Parts) -> None:
    """It cannot ask for the new partition while its fetch is parked: acks=all would wait for it."""
    parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    follower = Fetch(parts, row(), replica_id=2)
    consumer = Fetch(parts, row())
    assert (follower.answers, consumer.answers) == ([], [])
    parts.lead(index=7, isr=(1, 3), replicas=(1, 2, 3))
    assert follower.answers == []  # not in sync: nobody waits for it
    parts.lead(index=8, isr=(1, 2))
    assert follower.rows == [(0, ErrorCode.NONE, [])]
    assert consumer.answers == []


def test_a_follower_that_does_not_ask_for_all_yet_is_parked_shortly(parts: Parts) -> None:
    parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    parts.lead(index=8, isr=(1, 2))

    def parked_ms(*plan: FetchPartition, replica_id: int = 2) -> int:
        parked = Fetch(parts, *plan, replica_id=replica_id).parked
        assert parked is not None
        return parked.deadline_ms - parts.clock.monotonic_ms()

    assert parked_ms(row()) == SHORT_WAIT_MS
    assert parked_ms(row(), replica_id=-1) == 500
    assert parked_ms(row(), row(8)) == 500
    parts.lead(index=9, isr=(1, 2))
    parts.clock.now_ms += AWAIT_TIMEOUT_MS - 1
    assert parked_ms(row()) == SHORT_WAIT_MS
    parts.clock.now_ms += 1
    assert parked_ms(row()) == 500


class Unreadable(FaultyFileSystem):
    """Opens no file any more once it is `broken`."""

    broken = False

    def open(self, path: str, create: bool = False) -> object:  # type: ignore[override]
        if self.broken and path.startswith(self.prefix):
            raise OSError(5, "Input/output error")
        return super().open(path, create)


def test_a_disk_that_cannot_be_read_costs_only_its_own_partitions(tmp_path: Path) -> None:
    disk = Unreadable(Disk(), prefix=str(tmp_path / "a"))
    parts = Parts(tmp_path / "a", tmp_path / "b", fs=disk)
    parts.apply_leader_and_isr(partition_state(), partition_state(partition=1))
    for index in (0, 1):
        produce(parts, index)
    log = parts.replicas.get("t", 0).log
    log.local.close_handles()
    disk.broken = True
    assert Fetch(parts, row(0), row(1)).rows == [
        (0, ErrorCode.KAFKA_STORAGE_ERROR, []),
        (1, ErrorCode.NONE, [0]),
    ]
    assert parts.logs.offline_log_dirs == [str(tmp_path / "a")]


def test_a_follower_whose_position_leads_to_a_failure_of_the_disk_does_not_wait(
    tmp_path: Path,
) -> None:
    """It commits a record, after which a coordinator appends another one, which the disk refuses.
    When the other requests for these partitions were answered, this one did not wait yet."""
    parts = Parts(tmp_path / "a", tmp_path / "b")
    partition = parts.lead(isr=(1, 2), replicas=(1, 2))
    produce(parts)

    def disk_fails() -> None:
        parts.replicas.log_dir_failed(LogDirFailure(partition.log.log_dir, "no space left"))

    wait = DelayedProduce(1000, [ProduceWait(partition, 1)], disk_fails)
    parts.replicas.produce_purgatory.watch(wait, [partition.topic_partition])
    fetch = Fetch(parts, row(offset=1), replica_id=2)
    assert fetch.rows == [(0, ErrorCode.KAFKA_STORAGE_ERROR, [])]
    assert fetch.parked is None


def throttled(parts: Parts, rate: int) -> None:
    """t-0's replica here is throttled, and 2 is not in sync."""
    parts.lead(isr=(1,), replicas=(1, 2), leader_epoch=1, partition_epoch=1)
    parts.logs.update_topic_config("t", {"leader.replication.throttled.replicas": "0:1"})
    parts.replicas.quotas.leader.limit = rate


def test_a_throttled_follower_out_of_sync_gets_no_more_than_the_rate(parts: Parts) -> None:
    for _ in range(3):
        produce(parts)
    throttled(parts, rate=BATCH_BYTES)
    one = row(max_bytes=BATCH_BYTES, epoch=1)
    assert Fetch(parts, one, replica_id=2).rows == [(0, ErrorCode.NONE, [0])]
    assert Fetch(parts, row(offset=1, epoch=1), replica_id=2).rows == [(0, ErrorCode.NONE, [1, 2])]
    held_back = Fetch(parts, row(offset=1, epoch=1), replica_id=2)
    assert held_back.answers == []
    produce(parts)
    assert held_back.answers == [], "new records are no reason to answer"
    parts.clock.now_ms += 500
    parts.timers.fire()
    assert held_back.rows == [(0, ErrorCode.NONE, [])]
    parts.clock.now_ms += 2500
    assert Fetch(parts, row(offset=3, epoch=1), replica_id=2).rows == [(0, ErrorCode.NONE, [3])]


def test_what_was_read_before_its_disk_failed_is_sent_with_a_limit_too(tmp_path: Path) -> None:
    """Its partition is not hosted any more when its bytes are counted."""
    disk = Unreadable(Disk(), prefix=str(tmp_path / "a"))
    parts = Parts(tmp_path / "a", tmp_path / "b", fs=disk)
    for index in (0, 2):
        parts.lead(index=index, isr=(1, 2), replicas=(1, 2))
        parts.apply_leader_and_isr(partition_state(partition=1))
        produce(parts, index)
    read, unreadable = (parts.replicas.get("t", index).log for index in (0, 2))
    assert read.log_dir == unreadable.log_dir == str(tmp_path / "a")
    parts.replicas.quotas.leader.limit = MANY
    unreadable.local.close_handles()
    disk.broken = True
    assert Fetch(parts, row(), row(2), replica_id=2).rows == [
        (0, ErrorCode.NONE, [0]),
        (2, ErrorCode.KAFKA_STORAGE_ERROR, []),
    ]


def test_consumers_replicas_in_sync_and_other_partitions_are_not_held_back(parts: Parts) -> None:
    for index in (0, 1):
        produce(parts, index)
    throttled(parts, rate=1)
    parts.lead(index=1, isr=(1,), replicas=(1, 2), leader_epoch=1, partition_epoch=1)
    parts.replicas.quotas.leader.record(MANY, parts.clock.now_ms)
    assert Fetch(parts, row()).rows == [(0, ErrorCode.NONE, [0])]
    both = Fetch(parts, row(epoch=1), row(1, epoch=1), replica_id=2)
    assert both.rows == [(0, ErrorCode.NONE, []), (1, ErrorCode.NONE, [0])]
    parts.lead(isr=(1, 2), leader_epoch=2, partition_epoch=2)
    assert Fetch(parts, row(epoch=2), replica_id=2).rows == [(0, ErrorCode.NONE, [0])]


def test_the_end_of_a_wait_is_no_news_of_the_follower(parts: Parts) -> None:
    partition = parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    fetch = Fetch(parts, row(epoch=1), replica_id=2)
    began_ms = parts.clock.now_ms
    parts.clock.now_ms += 500
    parts.timers.fire()
    assert len(fetch.answers) == 1
    assert partition.remote_replicas[2].last_fetch_ms == began_ms


class Racks:
    """t-0 led by broker 1 of rack a, with 2 of rack b in sync up to offset 2."""

    def __init__(self, directory: Path, selector: str = RACK_AWARE_SELECTOR) -> None:
        self.parts = Parts(directory)
        brokers = [admins.broker(1, "a"), admins.broker(2, "b"), admins.broker(3, "c")]
        self.parts.metadata.apply(UpdateMetadataCommand(1, 1, 1, [], brokers))
        self.parts.lead(isr=(1, 2), replicas=(1, 2, 3))
        self.fetcher = FetchReader(self.parts.replicas, self.parts.clock, selector)
        for _ in range(2):
            produce(self.parts)
        self.parts.fetch_as_follower(self.parts.replicas.get("t", 0), 2)
        produce(self.parts)

    def sends_to(
        self,
        rack: str,
        offset: int = 2,
        version: int = 11,
        listener: str = "PLAINTEXT",
        epoch: int = -1,
    ) -> int:
        answers: list[list[FetchResult]] = []
        params = FetchParams(-1, 500, MANY, MANY, 0, version, rack, listener)
        parked = self.fetcher.fetch(params, [row(offset=offset, epoch=epoch)], answers.append)
        if parked is not None:
            return -1
        [[result]] = answers
        assert result.error == 0
        assert (result.high_watermark, result.log_start_offset, result.size_bytes) == (2, 0, 0)
        return result.preferred_read_replica


def test_a_consumer_is_sent_to_the_replica_in_its_rack(tmp_path: Path) -> None:
    racks = Racks(tmp_path)
    assert racks.sends_to("b") == 2
    assert racks.sends_to("a") == -1
    assert racks.sends_to("c") == -1, "3 is not in sync"
    assert racks.sends_to("") == -1
    assert racks.sends_to("b", offset=3) == -1, "2 does not have it"
    assert racks.sends_to("b", version=10) == -1
    assert racks.sends_to("b", listener="OTHER") == -1, "2 is not reached there"
    assert Racks(tmp_path / "x", LEADER_SELECTOR).sends_to("b") == -1


def test_a_consumer_of_another_epoch_is_fenced_before_it_is_sent_away(tmp_path: Path) -> None:
    racks = Racks(tmp_path)
    answers: list[list[FetchResult]] = []
    params = FetchParams(-1, 0, 1, MANY, 0, 11, "b", "PLAINTEXT")
    racks.fetcher.fetch(params, [row(offset=2, epoch=5)], answers.append)
    assert answers[0][0].error == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_serves_consumers_what_is_committed(parts: Parts) -> None:
    produce(parts)
    partition = parts.lead(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    assert Fetch(parts, row(epoch=1)).rows == [(0, ErrorCode.NONE, [0])]
    assert Fetch(parts, row(epoch=1), replica_id=2).rows == [
        (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
    ]
    waiting = Fetch(parts, row(offset=1, epoch=1))
    partition.log.append_as_follower(stamped(1), 0)
    parts.replicas.check_delayed_requests(partition)
    assert waiting.answers == [], "its leader has not said that it is committed"
    partition.log.update_high_watermark(2)
    parts.replicas.check_delayed_requests(partition)
    assert waiting.rows == [(0, ErrorCode.NONE, [1])]


def stamped(offset: int) -> bytes:
    """A batch as a leader of epoch 1 has it."""
    return build_batch([RecordData(b"k", b"v", 5, [])], base_offset=offset, leader_epoch=1)
