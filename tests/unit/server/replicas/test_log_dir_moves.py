"""Carrying logs between directories while they serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.server.replicas.log_dir_moves import LogDirMoves
from tests.harness.cores.server_parts import Parts

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Moving:
    """A leader of t-0 and t-1, whose logs are in the directories a and b."""

    def __init__(self, root: Path) -> None:
        self.paths = [str(root / "a"), str(root / "b")]
        self.parts = Parts(root / "a", root / "b")
        self.partitions = {index: self.parts.lead(index=index) for index in (0, 1)}
        self.futures = self.parts.logs.future_logs
        self.moves = LogDirMoves(self.parts.replicas, self.parts.clock)
        self.place = {tp: self.parts.logs.logs[tp].log_dir for tp in (T0, T1)}

    def produce(self, index: int, count: int = 1) -> None:
        record = RecordData(None, b"x" * 300_000, 0, [])
        for _ in range(count):
            self.parts.replicas.append("t", index, build_batch([record]), 1, 11)

    def elsewhere(self, tp: TopicPartition) -> str:
        return next(path for path in self.paths if path != self.place[tp])


@pytest.fixture
def moving(tmp_path: Path) -> Moving:
    return Moving(tmp_path)


def test_the_partition_serves_from_the_other_directory(moving: Moving) -> None:
    moving.produce(0, 9)
    partition = moving.partitions[0]
    before = partition.log.high_watermark
    moving.futures.move(T0, moving.elsewhere(T0))
    while moving.moves.step():
        pass
    assert partition.log is moving.parts.logs.logs[T0]
    assert partition.log.log_dir == moving.elsewhere(T0)
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (before, 9)
    moving.produce(0)
    assert partition.log.log_end_offset == 10


def test_logs_take_turns(moving: Moving) -> None:
    for index, tp in ((0, T0), (1, T1)):
        moving.produce(index, 9)
        moving.futures.move(tp, moving.elsewhere(tp))
    moving.moves.step()
    moving.moves.step()
    assert all(future.log_end_offset > 0 for future in moving.futures.logs.values())


def test_the_rate_is_kept(moving: Moving) -> None:
    moving.parts.replicas.quotas.set_rates(
        {"replica.alter.log.dirs.io.max.bytes.per.second": "1000000"}
    )
    moving.produce(0, 9)
    moving.futures.move(T0, moving.elsewhere(T0))
    steps = 0
    while moving.futures.logs:
        if not moving.moves.step():
            moving.parts.clock.now_ms += 100
            steps += 1
    # 2.7 MB at 1 MB/s; the last piece is not waited for.
    assert 15 <= steps <= 30


def test_nothing_to_do(moving: Moving) -> None:
    assert not moving.moves.step()


def test_a_log_that_cannot_be_read_moves_later_and_holds_no_other_back(moving: Moving) -> None:
    for index, tp in ((0, T0), (1, T1)):
        moving.produce(index)
        moving.futures.move(tp, moving.elsewhere(tp))
    path = Path(moving.partitions[0].log.segments.active.records.path)
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    for _ in range(6):
        moving.moves.step()
    assert moving.partitions[0].log.log_dir == moving.place[T0]
    assert moving.partitions[1].log.log_dir == moving.elsewhere(T1)
    path.write_bytes(sound)
    while moving.moves.step():
        pass
    assert moving.partitions[0].log.log_dir == moving.elsewhere(T0)
