"""Rounds over replicas that come, go, lag and rot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from kafkapy.client.replica_fetch import ReplicaRecords
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import build_batch
from kafkapy.tools import replica_verification
from kafkapy.tools.replica_verification import PartitionProgress, ReplicaVerification
from tests.harness.storage.batches import rows

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Replicas:
    """Brokers with the same batches in every partition, until a test changes one."""

    def __init__(self, *brokers: int, batches: int = 4) -> None:
        log = b"".join(build_batch(rows(2), base_offset=2 * i) for i in range(batches))
        self.logs = {broker: {A: log, B: log} for broker in brokers}
        self.high_watermarks = dict.fromkeys(brokers, 2 * batches)
        self.failures: dict[int, ApiError] = {}
        self.errors: dict[tuple[int, TopicPartition], ErrorCode] = {}
        self.asked: list[tuple[int, tuple[TopicPartition, ...]]] = []
        self.waited: list[bool] = []
        self.sends_one_partition = False

    def ask(
        self, broker: int, offsets: Mapping[TopicPartition, int], waits: bool
    ) -> dict[TopicPartition, ReplicaRecords]:
        self.asked.append((broker, tuple(offsets)))
        self.waited.append(waits)
        if broker in self.failures:
            raise self.failures[broker]
        found = {tp: self._answer(broker, tp, offset) for tp, offset in offsets.items()}
        if self.sends_one_partition:
            for tp in list(found)[1:]:
                found[tp] = found[tp]._replace(records=memoryview(b""))
        return found

    def _answer(self, broker: int, tp: TopicPartition, offset: int) -> ReplicaRecords:
        log = memoryview(self.logs[broker][tp])
        start = next((p for p, h in iter_headers(log) if h.last_offset >= offset), len(log))
        code = self.errors.get((broker, tp), ErrorCode.NONE)
        return ReplicaRecords(code, self.high_watermarks[broker], log[start : start + 150])


@pytest.fixture
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as made:
        yield made


def verification(
    replicas: Replicas, pool: Executor, *partitions: TopicPartition, end_offset: int | None = 8
) -> ReplicaVerification:
    sources = {
        broker: (lambda offsets, waits, broker=broker: replicas.ask(broker, offsets, waits))
        for broker in replicas.logs
    }
    ids = tuple(replicas.logs)
    rows = [PartitionProgress(tp, ids, 0, end_offset) for tp in partitions]
    return ReplicaVerification(sources, rows, pool, fetch_bytes=1000)


def test_rounds_end_when_all_is_compared(pool: Executor) -> None:
    made = verification(Replicas(1, 2, 3), pool, A, B)
    found = list(made.rounds())
    assert len(found) > 1, "one fetch held it all"
    assert [(each.offset, each.batches, each.is_done) for each in made.partitions] == [
        (8, 4, True),
        (8, 4, True),
    ]
    assert all(each.advanced and not each.differences for each in found)
    assert found[-1].lag == (0, A, 8)
    assert found[0].lag.messages > 0


def test_what_rots_does_not_stop_the_rest(pool: Executor) -> None:
    replicas = Replicas(1, 2)
    rotten = bytearray(replicas.logs[2][A])
    rotten[rotten.index(b"value")] ^= 1
    replicas.logs[2][A] = bytes(rotten)
    made = verification(replicas, pool, A, B)
    differences = [each for found in made.rounds() for each in found.differences]
    assert [(each.partition, each.corrupt) for each in differences] == [(A, (2,))]
    assert all(each.is_done for each in made.partitions)


def test_a_partition_whose_offsets_part_is_left(pool: Executor) -> None:
    replicas = Replicas(1, 2)
    replicas.logs[2][A] = build_batch(rows(3))
    made = verification(replicas, pool, A)
    (found,) = made.rounds()
    assert [each.field for each in found.differences] == ["offset"]
    assert (made.partitions[0].diverged, made.unfinished) == (True, [])


def test_a_difference_behind_a_batch_above_the_fetch_size_is_found(pool: Executor) -> None:
    """A broker sends such a batch only in the first partition of a response."""
    replicas = Replicas(1, 2)
    replicas.sends_one_partition = True
    rotten = bytearray(replicas.logs[2][B])
    rotten[rotten.rindex(b"value")] ^= 1
    replicas.logs[2][B] = bytes(rotten)
    made = verification(replicas, pool, A, B)
    differences = [each for found in made.rounds() for each in found.differences]
    assert [(each.partition, each.corrupt) for each in differences] == [(B, (2,))]
    assert [(each.offset, each.batches) for each in made.partitions] == [(8, 4), (8, 4)]


@pytest.mark.parametrize("kind", ["dead", "error", "behind", "missing"])
def test_a_replica_that_holds_the_others_up(kind: str, pool: Executor) -> None:
    replicas = Replicas(1, 2)
    expected = {
        "dead": "replica 2: NETWORK_EXCEPTION",
        "error": "replica 2: OFFSET_OUT_OF_RANGE",
        "behind": "replica 2's high watermark is 0",
        "missing": "replica 2 has no records at offset 0",
    }
    match kind:
        case "dead":
            replicas.failures[2] = ApiError(ErrorCode.NETWORK_EXCEPTION)
        case "error":
            replicas.errors[2, A] = ErrorCode.OFFSET_OUT_OF_RANGE
        case "behind":
            replicas.high_watermarks[2] = 0
        case "missing":
            replicas.logs[2][A] = b""
    made = verification(replicas, pool, A)
    found = next(made.rounds())
    assert (found.advanced, found.lag) == (False, (8, A, 0))
    assert made.partitions[0].problem == expected[kind]


def test_offsets_that_compaction_emptied_everywhere_are_passed(pool: Executor) -> None:
    replicas = Replicas(1, 2)
    replicas.high_watermarks = {1: 12, 2: 11}
    made = verification(replicas, pool, A, end_offset=11)
    assert all(found.advanced for found in made.rounds())
    assert (made.partitions[0].offset, made.partitions[0].batches) == (11, 4)


def test_memory_bounds_the_partitions_of_a_fetch(
    pool: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_verification, "MEMORY_BYTES", 2000)
    replicas = Replicas(1, 2)
    made = verification(replicas, pool, A, B)
    assert len([*made.rounds()]) > 1
    assert {partitions for _, partitions in replicas.asked} == {(A,), (B,)}


def test_a_round_waits_for_records_once(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """If each fetch waited, a round over thousands of idle partitions would take minutes."""
    monkeypatch.setattr(replica_verification, "MEMORY_BYTES", 1000)
    replicas = Replicas(1, batches=0)
    replicas.logs[1] = {TopicPartition("t", index): b"" for index in range(5)}
    idle = verification(replicas, pool, *replicas.logs[1], end_offset=None)
    next(idle.rounds())
    assert replicas.waited == [False] * 4 + [True]


def test_a_partition_that_is_fetched_again_waits_for_nothing(pool: Executor) -> None:
    replicas = Replicas(1, 2)
    replicas.sends_one_partition = True
    next(verification(replicas, pool, A, B).rounds())
    waits = dict(zip(replicas.asked, replicas.waited, strict=True))
    assert (waits[1, (A, B)], waits[1, (B,)]) == (True, False)
