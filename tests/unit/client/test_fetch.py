"""Raw batches of a range: order, bounds, gaps, cut tails, leaders that move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import READ_COMMITTED, FetchedBatches, fetch_batches
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import build_batch
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.storage.batches import rows

TP = TopicPartition("t", 0)
TOPIC_ID = Uuid(bytes(range(16)))


class Log:
    """A partition whose batches hold `sizes` records each, at the base offsets given."""

    def __init__(self, batches: Sequence[tuple[int, int]], end: int) -> None:
        self.batches = [(base, n, build_batch(rows(n), base_offset=base)) for base, n in batches]
        self.end = end
        self.codes: list[ErrorCode] = []
        self.throttle_ms: list[int] = []
        self.throttled_rows = True
        self.local_start = 0
        """The first offset that is not in the remote storage only."""

        self.remote_is_slow = False

    def list_offsets(self, request: Any, port: int) -> ListOffsetsResponse:
        assert request.topics[0].partitions[0].timestamp == -4
        self.remote_is_slow = False
        row = ListOffsetsPartitionResponse(partition_index=0, offset=self.local_start)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])

    def answer(self, request: Any, port: int) -> FetchResponse:
        wanted = request.topics[0].partitions[0]
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        throttle_ms = self.throttle_ms.pop(0) if self.throttle_ms else 0
        records = b"".join(b for base, n, b in self.batches if base + n > wanted.fetch_offset)
        is_late = self.remote_is_slow and wanted.fetch_offset < self.local_start
        empty = code or throttle_ms or is_late
        data = PartitionData(
            error_code=code,
            high_watermark=self.end,
            last_stable_offset=self.end,
            aborted_transactions=[AbortedTransaction(producer_id=5, first_offset=1)],
            records=b"" if empty else records[: wanted.partition_max_bytes],
        )
        topic = FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])
        topics = [topic] if self.throttled_rows or not throttle_ms else []
        return FetchResponse(responses=topics, throttle_time_ms=throttle_ms)


def cluster_on(log: Log, **options: Any) -> tuple[Cluster, ScriptedCluster]:
    script = {
        ApiKey.METADATA: metadata({"t": {0: (1, [1], [1])}}, **options),
        ApiKey.FETCH: log.answer,
        ApiKey.LIST_OFFSETS: log.list_offsets,
    }
    scripted = ScriptedCluster(script)
    return Cluster("b:1", connector=scripted.connect), scripted


def bases(fetched: Sequence[FetchedBatches]) -> list[int]:
    return [h.base_offset for each in fetched for _, h in iter_headers(each.buffer)]


def test_a_range_comes_in_order_and_ends_where_it_was_told_to() -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    cluster, scripted = cluster_on(log)
    fetched = list(fetch_batches(cluster, TP, 1, 9))
    assert bases(fetched) == [0, 3, 6]
    assert (fetched[-1].next_offset, fetched[-1].high_watermark) == (9, 9)
    assert len(scripted.requests_of(ApiKey.FETCH)) == 1


def test_a_cut_batch_is_fetched_again_whole() -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    size = len(log.batches[0][2])
    cluster, scripted = cluster_on(log)
    fetched = list(fetch_batches(cluster, TP, 0, 9, max_bytes=size + size // 2))
    assert bases(fetched) == [0, 3, 6]
    assert [len(each.buffer) for each in fetched] == [size, size, size]
    asked = [r.topics[0].partitions[0].fetch_offset for r in scripted.requests_of(ApiKey.FETCH)]
    assert asked == [0, 3, 6]


@pytest.mark.parametrize(("start", "end"), [(0, 0), (5, 5), (7, 3)])
def test_an_empty_range_asks_nothing(start: int, end: int) -> None:
    cluster, scripted = cluster_on(Log([], end=9))
    assert list(fetch_batches(cluster, TP, start, end)) == []
    assert scripted.requests == []


def test_a_tail_that_compaction_emptied_is_passed_over() -> None:
    cluster, _ = cluster_on(Log([(0, 3)], end=100))
    assert bases(list(fetch_batches(cluster, TP, 0, 100))) == [0]
    assert list(fetch_batches(cluster, TP, 50, 60)) == []


def test_a_gap_in_the_log_of_a_broker_without_tiered_storage_is_passed_over() -> None:
    cluster, scripted = cluster_on(Log([(0, 3)], end=100))
    scripted.versions = {**scripted.versions, ApiKey.LIST_OFFSETS: (0, 7)}
    assert bases(list(fetch_batches(cluster, TP, 0, 100))) == [0]
    assert scripted.requests_of(ApiKey.LIST_OFFSETS) == []


def test_records_in_a_slow_remote_storage_are_not_lost() -> None:
    """Kafka's leader sends no records, no error and the high watermark when the remote storage
    needs more than `remote.fetch.max.wait.ms`, or is throttled (`DelayedRemoteFetch`).
    """
    log = Log([(0, 3), (3, 3)], end=6)
    log.local_start = 3
    log.remote_is_slow = True
    cluster, _ = cluster_on(log)
    assert bases(list(fetch_batches(cluster, TP, 0, 6))) == [0, 3]


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_throttled_answer_is_not_a_gap(has_rows: bool) -> None:
    """Brokers give no rows at all (KIP-219)."""
    log = Log([(0, 3)], end=3)
    log.throttle_ms = [10]
    log.throttled_rows = has_rows
    cluster, scripted = cluster_on(log)
    assert bases(list(fetch_batches(cluster, TP, 0, 3))) == [0]
    assert len(scripted.requests_of(ApiKey.FETCH)) == 2


def test_a_throttled_answer_without_rows_is_asked_again() -> None:
    """As Kafka answers, and we do: nothing of what was read, and how long to wait."""
    log = Log([(0, 3), (3, 3)], end=6)
    cluster, scripted = cluster_on(log)
    answers = iter((log.answer, lambda *_: FetchResponse(throttle_time_ms=10), log.answer))
    scripted.script[ApiKey.FETCH] = lambda request, port: next(answers)(request, port)
    fetched = list(fetch_batches(cluster, TP, 0, 6, max_bytes=len(log.batches[0][2])))
    assert bases(fetched) == [0, 3]
    assert len(scripted.requests_of(ApiKey.FETCH)) == 3


def test_records_that_do_not_come_are_a_timeout() -> None:
    cluster, _ = cluster_on(Log([(0, 3)], end=3))
    cluster.api_timeout_ms = 50
    with pytest.raises(ApiError, match="offsets 3 to 5 did not become readable") as caught:
        list(fetch_batches(cluster, TP, 0, 5))
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_leader_that_moved_is_found_again() -> None:
    log = Log([(0, 3)], end=3)
    log.codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
    cluster, scripted = cluster_on(log)
    assert bases(list(fetch_batches(cluster, TP, 0, 3))) == [0]
    assert len(scripted.requests_of(ApiKey.METADATA)) == 3


def test_no_record_is_lost_because_a_leader_that_starts_does_not_know_its_topics_yet() -> None:
    log = Log([(0, 3)], end=3)
    log.codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    cluster, scripted = cluster_on(log)
    assert bases(list(fetch_batches(cluster, TP, 0, 3))) == [0]
    assert len(scripted.requests_of(ApiKey.METADATA)) == 2
    log.codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    scripted.script[ApiKey.METADATA] = metadata()
    with pytest.raises(ApiError, match="Partition t-0 does not exist") as caught:
        list(fetch_batches(cluster, TP, 0, 3))
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offset_out_of_range_is_the_callers() -> None:
    log = Log([], end=3)
    log.codes = [ErrorCode.OFFSET_OUT_OF_RANGE]
    cluster, _ = cluster_on(log)
    with pytest.raises(ApiError, match="t-0 at offset 1: OFFSET_OUT_OF_RANGE") as caught:
        list(fetch_batches(cluster, TP, 1, 3))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_reason_why_a_broker_cannot_be_read_is_in_the_error() -> None:
    cluster, scripted = cluster_on(Log([], end=3))
    scripted.versions = {**scripted.versions, ApiKey.FETCH: (0, 3)}
    with pytest.raises(ApiError, match=r"t-0 at offset 1: .* does not support FETCH with version"):
        list(fetch_batches(cluster, TP, 1, 3))
    frozen, scripted = cluster_on(Log([], end=3))
    scripted.script[ApiKey.FETCH] = TimeoutError()
    frozen.api_timeout_ms = 50
    with pytest.raises(ApiError, match="did not become readable: b:9092 did not answer FETCH"):
        list(fetch_batches(frozen, TP, 1, 3))


def test_aborted_transactions_come_with_read_committed_only() -> None:
    cluster, scripted = cluster_on(Log([(0, 3)], end=3))
    (committed,) = fetch_batches(cluster, TP, 0, 3, isolation_level=READ_COMMITTED)
    (uncommitted,) = fetch_batches(cluster, TP, 0, 3)
    assert committed.aborted_transactions == [(5, 1)]
    assert uncommitted.aborted_transactions == []
    assert [r.isolation_level for r in scripted.requests_of(ApiKey.FETCH)] == [1, 0]


def test_topics_go_by_id_where_they_have_one() -> None:
    cluster, scripted = cluster_on(Log([(0, 3)], end=3))
    list(fetch_batches(cluster, TP, 0, 3))
    named, named_by = cluster_on(Log([(0, 3)], end=3), topic_ids={"t": TOPIC_ID})
    list(fetch_batches(named, TP, 0, 3))
    versions = [
        version
        for each in (scripted, named_by)
        for _, request, version in each.requests
        if request.API_KEY == ApiKey.FETCH
    ]
    assert versions == [12, 18]
    assert named_by.requests_of(ApiKey.FETCH)[0].topics[0].topic_id == TOPIC_ID


def test_the_next_fetch_is_on_its_way_while_one_is_worked_on() -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    size = len(log.batches[0][2])
    cluster, scripted = cluster_on(log)
    asked = []
    for fetched in fetch_batches(cluster, TP, 0, 9, max_bytes=size):
        asked.append((fetched.next_offset, len(scripted.requests_of(ApiKey.FETCH))))
    assert asked == [(3, 2), (6, 3), (9, 3)]  # one ahead, and none behind the end of the range


def test_what_was_asked_ahead_is_dropped_with_its_connection() -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    size = len(log.batches[0][2])
    cluster, scripted = cluster_on(log)
    reading = fetch_batches(cluster, TP, 0, 9, max_bytes=size)
    assert next(reading).next_offset == 3
    reading.close()
    assert [each.closed for each in scripted.connections] == [False, True]
    assert bases(list(fetch_batches(cluster, TP, 6, 9))) == [6]


def test_two_readers_of_one_broker_do_not_take_each_others_answers() -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    size = len(log.batches[0][2])
    cluster, _ = cluster_on(log)
    one = fetch_batches(cluster, TP, 0, 9, max_bytes=size)
    other = fetch_batches(cluster, TP, 3, 9, max_bytes=size)
    found = [(next(one).next_offset, next(other).next_offset) for _ in range(2)]
    assert found == [(3, 6), (6, 9)]
    assert bases(list(one)) == [6]


@pytest.mark.parametrize("failure", [ConnectionResetError(104, "reset"), TimeoutError()])
def test_an_answer_asked_ahead_that_does_not_come_is_asked_for_again(failure: OSError) -> None:
    log = Log([(0, 3), (3, 3), (6, 3)], end=9)
    size = len(log.batches[0][2])
    cluster, scripted = cluster_on(log)
    reading = fetch_batches(cluster, TP, 0, 9, max_bytes=size)
    scripted.script[ApiKey.FETCH] = [log.answer, failure, log.answer]
    assert bases(list(reading)) == [0, 3, 6]
    offsets = [r.topics[0].partitions[0].fetch_offset for r in scripted.requests_of(ApiKey.FETCH)]
    assert offsets == [0, 3, 3, 6]


def test_a_leader_that_moved_after_it_was_asked_ahead_is_found_again() -> None:
    log = Log([(0, 3), (3, 3)], end=6)
    size = len(log.batches[0][2])
    cluster, scripted = cluster_on(log)
    log.codes = [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert bases(list(fetch_batches(cluster, TP, 0, 6, max_bytes=size))) == [0, 3]
    assert len(scripted.requests_of(ApiKey.FETCH)) == 3


def test_a_range_deleted_after_it_was_asked_ahead_is_the_callers() -> None:
    log = Log([(0, 3), (3, 3)], end=6)
    size = len(log.batches[0][2])
    cluster, _ = cluster_on(log)
    log.codes = [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE]
    reading = fetch_batches(cluster, TP, 0, 6, max_bytes=size)
    assert bases([next(reading)]) == [0]
    with pytest.raises(ApiError, match="t-0 at offset 3: OFFSET_OUT_OF_RANGE"):
        next(reading)


class RackedLog(Log):
    """Partition 0 with its leader on port 9092, which names broker 2 for rack r2."""

    def __init__(self, batches: Sequence[tuple[int, int]], end: int) -> None:
        super().__init__(batches, end)
        self.fetches: list[tuple[int, int, str]] = []
        """Port, offset and rack of each fetch."""

        self.follower_end = end
        self.follower_error = ErrorCode.NONE
        self.follower_is_slow = False

    def answer(self, request: Any, port: int) -> FetchResponse:
        offset = request.topics[0].partitions[0].fetch_offset
        self.fetches.append((port, offset, request.rack_id))
        response = super().answer(request, port)
        data = response.responses[0].partitions[0]
        if port == 9093:
            data.error_code = self.follower_error
            if offset >= self.follower_end:
                data.records, data.high_watermark = b"", self.follower_end
            if self.follower_is_slow:
                data.records = b""
        elif request.rack_id == "r2" and offset < self.follower_end:
            data.records, data.preferred_read_replica = b"", 2
        return response


def racked(log: Log) -> Cluster:
    topics = metadata({"t": {0: (1, [1, 2], [1, 2])}}, brokers={1: 9092, 2: 9093})
    script = {ApiKey.METADATA: topics, ApiKey.FETCH: log.answer}
    scripted = ScriptedCluster({**script, ApiKey.LIST_OFFSETS: log.list_offsets})
    return Cluster("b:9092", {"client.rack": "r2"}, connector=scripted.connect)


def test_a_reader_pays_for_no_traffic_between_racks() -> None:
    log = RackedLog([(0, 3), (3, 3)], end=6)
    size = len(log.batches[0][2])
    assert bases(list(fetch_batches(racked(log), TP, 0, 6, max_bytes=size))) == [0, 3]
    assert log.fetches == [(9092, 0, "r2"), (9093, 0, "r2"), (9093, 3, "r2")]


def test_a_replica_in_the_rack_that_lags_does_not_stop_a_reader() -> None:
    log = RackedLog([(0, 3), (3, 3)], end=6)
    log.follower_end = 3
    size = len(log.batches[0][2])
    assert bases(list(fetch_batches(racked(log), TP, 0, 6, max_bytes=size))) == [0, 3]
    assert [port for port, *_ in log.fetches] == [9092, 9093, 9093, 9092]


@pytest.mark.parametrize(
    "code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER], ids=str
)
def test_a_replica_in_the_rack_that_fails_does_not_stop_a_reader(code: ErrorCode) -> None:
    log = RackedLog([(0, 3)], end=3)
    log.follower_error = code
    assert bases(list(fetch_batches(racked(log), TP, 0, 3))) == [0]
    assert log.fetches == [(9092, 0, "r2"), (9093, 0, "r2"), (9092, 0, "")]


def test_records_that_a_replica_in_the_rack_reads_slowly_from_remote_are_not_lost() -> None:
    """The leader still has them in its local log, which says nothing about the follower's."""
    log = RackedLog([(0, 3)], end=3)
    log.follower_is_slow = True
    assert bases(list(fetch_batches(racked(log), TP, 0, 3))) == [0]
    assert log.fetches == [(9092, 0, "r2"), (9093, 0, "r2"), (9092, 0, "")]
