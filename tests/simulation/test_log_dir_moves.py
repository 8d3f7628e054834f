"""Power cuts while logs move between directories: flushed records survive, exactly once."""

from __future__ import annotations

import random

import pytest

from kafkapy.record.builder import build_batch
from kafkapy.record.records import iter_records
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.storage.log_builder import TOPIC_ID, TP, row
from tests.simulation.sim_filesystem import SimFileSystem

DIRS = ["/a", "/b"]
CONFIGS = {"segment.bytes": "700", "file.delete.delay.ms": "0", "flush.ms": "0"}


class Broker:
    """One log over two directories on a disk that loses unsynced data."""

    def __init__(self, seed: int) -> None:
        self.disk = SimFileSystem()
        self.clock = ManualClock()
        self.starts = seed * 1000
        self.sent: list[str] = []
        self.flushed = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.manager = LogManager(self.disk, DIRS, {}, self.clock, SeededRandom(self.starts))
        self.manager.open()
        self.manager.load({TP.topic: CONFIGS})
        self.manager.get_or_create_log(TP, TOPIC_ID, CONFIGS, True)

    @property
    def log(self) -> UnifiedLog:
        return self.manager.logs[TP]

    def produce(self) -> None:
        value = f"v{len(self.sent)}"
        self.log.append_as_leader(build_batch([row("k", value)]), 0, self.clock.now_ms)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.sent.append(value)

    def flush(self) -> None:
        for task in self.manager.flush_due_logs(self.clock.now_ms):
            task.fsync()
            task.complete(self.clock.now_ms)
        self.manager.checkpoint_recovery_points()
        self.flushed = max(self.flushed, self.log.recovery_point)

    def copy(self, pieces: int) -> None:
        for _ in range(pieces):
            if TP not in self.manager.future_logs.logs:
                return
            if not self.manager.future_logs.copy(TP, self.clock.now_ms):
                self.manager.future_logs.replace(TP, self.clock.now_ms)

    def power_cut(self, seed: int) -> None:
        for log in (*self.manager.logs.values(), *self.manager.future_logs.logs.values()):
            log.abandon()
        self.disk.crash(seed)
        self.start()
        self.check()
        del self.sent[self.log.log_end_offset :]
        self.flushed = min(self.flushed, len(self.sent))
        self.log.update_high_watermark(self.log.log_end_offset)

    def check(self) -> None:
        """Check that the log is a clean prefix of the sent records, with all flushed ones."""
        end = self.log.log_end_offset
        assert self.flushed <= end <= len(self.sent)
        values, offset = [], 0
        while offset < end:
            piece = self.log.read(offset, 1 << 20, end, True).records
            values += [(r.value or b"").decode() for r in iter_records(piece)]
            offset = len(values)
        assert values == self.sent[:end]


@pytest.mark.parametrize("seed", range(15))
def test_flushed_records_survive_any_power_cut(seed: int) -> None:
    chance = random.Random(seed)
    broker = Broker(seed)
    moves = 0
    for _ in range(200):
        broker.clock.now_ms += 1
        step = chance.random()
        if step < 0.5:
            broker.produce()
        elif step < 0.6:
            broker.flush()
        elif step < 0.7:
            broker.manager.future_logs.move(TP, chance.choice(DIRS))
        elif step < 0.92:
            before = broker.log.log_dir
            broker.copy(chance.randint(1, 4))
            moves += broker.log.log_dir != before
        elif step < 0.97:
            sum(broker.manager.deletion_slices(broker.clock.now_ms))
        else:
            broker.power_cut(chance.randrange(1 << 30))
    broker.check()
    broker.power_cut(seed)
    assert moves > 0
