"""KIP-227: which partitions an incremental fetch reads, and which rows it answers with."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.replication.fetch_session import (
    EPOCH_MAX,
    EVICTION_IDLE_MS,
    FetchContext,
    FetchPartition,
    FetchResult,
    FetchSessionCache,
)


class Counting:
    """A Random that counts up."""

    def __init__(self) -> None:
        self.last = 0

    def below(self, n: int) -> int:
        self.last += 1
        return self.last % n

    def bytes(self, n: int) -> bytes:
        return bytes(n)


def wanted(topic: str, partition: int = 0, offset: int = 0) -> FetchPartition:
    return FetchPartition(topic, ZERO_UUID, partition, offset, 1000)


def open_session(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    rows: list[FetchPartition],
    forgotten: tuple[tuple[str, int], ...] = (),
    now_ms: int = 0,
    privileged: bool = False,
    ids: bool = False,
) -> FetchContext:
    return cache.open(
        session_id,
        epoch,
        rows,
        forgotten,
        uses_topic_ids=ids,
        privileged=privileged,
        now_ms=now_ms,
    )


def answer(
    row: FetchPartition, high_watermark: int = 0, size: int = 0, error: int = 0
) -> FetchResult:
    result = FetchResult(row, error)
    result.high_watermark = -1 if error else high_watermark
    result.log_start_offset = 0
    result.size_bytes = size
    return result


def plan(context: FetchContext) -> list[str | None]:
    return [row.topic for row in context.plan]


def told(context: FetchContext, results: list[FetchResult]) -> list[str | None]:
    return [result.wanted.topic for result in context.choose(results)]


def test_a_sessionless_fetch_makes_no_session_and_answers_every_row() -> None:
    cache = FetchSessionCache(10, Counting())
    context = open_session(cache, 0, -1, [wanted("a"), wanted("b")])
    assert (context.session_id, plan(context), len(cache)) == (0, ["a", "b"], 0)
    assert told(context, [answer(row) for row in context.plan]) == ["a", "b"]


def test_an_incremental_fetch_reads_all_and_answers_only_what_changed() -> None:
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a"), wanted("b")])
    assert first.session_id > 0
    assert told(first, [answer(row) for row in first.plan]) == ["a", "b"]
    second = open_session(cache, first.session_id, 1, [])
    assert plan(second) == ["a", "b"]
    a, b = second.plan
    assert told(second, [answer(a, high_watermark=5), answer(b)]) == ["a"]
    third = open_session(cache, first.session_id, 2, [wanted("a", offset=5)])
    assert [row.fetch_offset for row in third.plan] == [5, 0]
    a, b = third.plan
    assert told(third, [answer(a, 5), answer(b, 0)]) == []


def test_partitions_that_gave_data_go_to_the_end_of_the_order() -> None:
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a"), wanted("b")])
    a, b = first.plan
    first.choose([answer(a, 1, size=10), answer(b)])
    assert plan(open_session(cache, first.session_id, 1, [])) == ["b", "a"]


def test_after_an_error_row_the_next_success_is_told_even_if_nothing_moved() -> None:
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a")])
    first.choose([answer(first.plan[0], 7)])
    second = open_session(cache, first.session_id, 1, [])
    assert told(second, [answer(second.plan[0], error=6)]) == ["a"]
    third = open_session(cache, first.session_id, 2, [])
    assert told(third, [answer(third.plan[0], 7)]) == ["a"]


def test_who_was_told_where_to_truncate_is_told_the_high_watermark_again() -> None:
    """It could not use the one that came with that: its log was another. Without this it would
    keep an old one for as long as nothing is appended (found by the simulator)."""
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a", offset=9)])
    diverged = answer(first.plan[0], high_watermark=5)
    diverged.diverging_epoch = (0, 5)
    assert told(first, [diverged]) == ["a"]
    then = open_session(cache, first.session_id, 1, [wanted("a", offset=5)])
    assert told(then, [answer(then.plan[0], high_watermark=5)]) == ["a"]
    later = open_session(cache, first.session_id, 2, [])
    assert told(later, [answer(later.plan[0], high_watermark=5)]) == []


def test_in_a_new_leader_epoch_the_high_watermark_is_told_again() -> None:
    """A follower throws away what was answered before it heard of the epoch."""
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a")])
    assert told(first, [answer(first.plan[0], high_watermark=5)]) == ["a"]
    row = wanted("a")
    row.current_leader_epoch = 1
    then = open_session(cache, first.session_id, 1, [row])
    assert told(then, [answer(then.plan[0], high_watermark=5)]) == ["a"]


def test_forgetting_the_last_partition_closes_the_session() -> None:
    cache = FetchSessionCache(10, Counting())
    first = open_session(cache, 0, 0, [wanted("a"), wanted("b")])
    second = open_session(cache, first.session_id, 1, [], (("a", 0),))
    assert plan(second) == ["b"]
    third = open_session(cache, first.session_id, 2, [], (("b", 0),))
    assert (third.session_id, len(cache)) == (0, 0)


@pytest.mark.parametrize(
    ("session_id", "epoch", "ids", "code"),
    [
        (99, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_wrong_session_is_refused(
    session_id: int | None, epoch: int, ids: bool, code: ErrorCode
) -> None:
    cache = FetchSessionCache(10, Counting())
    made = open_session(cache, 0, 0, [wanted("a")]).session_id
    with pytest.raises(ApiError) as refused:
        open_session(cache, made if session_id is None else session_id, epoch, [], ids=ids)
    assert refused.value.code is code


def test_sessions_with_topic_ids_know_topics_of_one_name_apart() -> None:
    cache = FetchSessionCache(10, Counting())
    old, new = (FetchPartition("a", Uuid(bytes([i] * 16)), 0, i, 1000) for i in (1, 2))
    context = open_session(cache, 0, 0, [old, new], ids=True)
    assert [row.fetch_offset for row in context.plan] == [1, 2]
    assert cache.partition_count == 2


def test_the_epoch_wraps_to_one() -> None:
    cache = FetchSessionCache(10, Counting())
    made = open_session(cache, 0, 0, [wanted("a")]).session_id
    cache._sessions[made].epoch = EPOCH_MAX
    open_session(cache, made, EPOCH_MAX, [])
    assert plan(open_session(cache, made, 1, [])) == ["a"]


def test_epoch_zero_or_minus_one_closes_the_named_session() -> None:
    cache = FetchSessionCache(10, Counting())
    made = open_session(cache, 0, 0, [wanted("a")]).session_id
    replaced = open_session(cache, made, 0, [wanted("b")]).session_id
    assert replaced not in (0, made)
    assert len(cache) == 1
    open_session(cache, replaced, -1, [wanted("b")])
    assert len(cache) == 0


def test_a_full_cache_evicts_the_idle_but_not_the_busy() -> None:
    cache = FetchSessionCache(1, Counting())
    kept = open_session(cache, 0, 0, [wanted("a")]).session_id
    refused = open_session(cache, 0, 0, [wanted("b")], now_ms=1000)
    assert (refused.session_id, plan(refused)) == (0, ["b"])
    taken = open_session(cache, 0, 0, [wanted("b")], now_ms=EVICTION_IDLE_MS + 1)
    assert taken.session_id not in (0, kept)
    assert len(cache) == 1
    assert cache.get(kept) is None


def test_new_sessions_of_consumers_do_not_keep_a_follower_without_one() -> None:
    """As after a restart, when all consumers connect again within two minutes (KIP-227)."""
    cache = FetchSessionCache(2, Counting())
    open_session(cache, 0, 0, [wanted("a")])
    large = open_session(cache, 0, 0, rows(2)).session_id
    first = open_session(cache, 0, 0, rows(3), privileged=True).session_id
    assert first
    assert cache.get(large) is not None  # the smallest consumer's session was evicted
    second = open_session(cache, 0, 0, [wanted("b")], privileged=True).session_id
    assert second
    assert cache.get(large) is None
    assert open_session(cache, 0, 0, rows(4), privileged=True).session_id == 0
    assert open_session(cache, 0, 0, rows(4)).session_id == 0
    assert cache.get(first) is not None
    assert cache.get(second) is not None


def test_a_row_that_sends_the_consumer_elsewhere_is_always_told() -> None:
    result = FetchResult(FetchPartition("t", ZERO_UUID, 0, 0, 100))
    assert not result.must_send()
    result.preferred_read_replica = 3
    assert result.must_send()


def test_a_session_that_nobody_is_told_of_is_forgotten() -> None:
    cache = FetchSessionCache(10, Counting())
    kept = open_session(cache, 0, 0, [wanted("t")])
    cache.remove(open_session(cache, 0, 0, [wanted("t")]))
    cache.remove(open_session(cache, 0, -1, [wanted("t")]))
    assert len(cache) == 1
    assert open_session(cache, kept.session_id, 1, []).session_id == kept.session_id


def rows(count: int, first: int = 0) -> list[FetchPartition]:
    return [wanted("many", first + index) for index in range(count)]


def test_sessions_of_many_partitions_hold_a_bounded_number_together() -> None:
    cache = FetchSessionCache(1000, Counting(), partitions_max=1000)
    first = open_session(cache, 0, 0, rows(600))
    assert first.session_id > 0
    second = open_session(cache, 0, 0, rows(600))
    assert second.session_id == 0  # it is answered, and names all partitions again next time
    assert len(second.plan) == 600
    assert open_session(cache, 0, 0, rows(100)).session_id > 0
    assert open_session(cache, 0, 0, rows(600), privileged=True).session_id > 0


def test_a_session_does_not_grow_beyond_the_bound() -> None:
    cache = FetchSessionCache(1000, Counting(), partitions_max=1000)
    session_id = open_session(cache, 0, 0, rows(600)).session_id
    known = open_session(cache, session_id, 1, rows(600))
    assert known.session_id == session_id
    with pytest.raises(ApiError) as refused:
        open_session(cache, session_id, 2, rows(600, first=600))
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.partition_count == 0


@pytest.mark.parametrize("privileged", [False, True])
def test_sessions_of_clients_that_are_gone_do_not_take_the_place_of_new_ones_for_good(
    privileged: bool,
) -> None:
    """A follower that restarted some times had no session until its leader restarted."""
    cache = FetchSessionCache(1000, Counting(), partitions_max=1000)
    gone = open_session(cache, 0, 0, rows(600), privileged=privileged).session_id
    small = open_session(cache, 0, 0, rows(100), now_ms=1, privileged=privileged).session_id
    early = EVICTION_IDLE_MS
    assert open_session(cache, 0, 0, rows(600), now_ms=early, privileged=privileged).session_id == 0
    late = early + 1
    assert open_session(cache, 0, 0, rows(600), now_ms=late, privileged=privileged).session_id > 0
    assert cache.get(gone) is None
    assert cache.get(small) is not None
    assert len(cache) == 2
