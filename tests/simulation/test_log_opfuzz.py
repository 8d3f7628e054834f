"""Random operations on a real log, compared with a list of the expected records."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkapy.record.codec import Codec
from kafkapy.storage.verify import verify_log_dir
from tests.harness.storage.log_builder import LogBuilder, row


class Fuzz:
    """A log and its model: `rows[offset]` is (value, timestamp), `batches` the base offsets."""

    def __init__(self, path: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.builder = LogBuilder(
            path,
            seed=seed,
            segment_bytes=str(self.chance.choice((500, 1500, 6000))),
            segment_index_bytes=str(self.chance.choice((24, 80, 10_000))),
            index_interval_bytes=str(self.chance.choice((0, 100, 4096))),
            segment_ms="5000",
            retention_ms="-1",
            file_delete_delay_ms="0",
        )
        self.rows: dict[int, tuple[str, int]] = {}
        self.batches: dict[int, int] = {}
        self.start = 0
        self.end = 0

    def append(self) -> None:
        count = self.chance.randint(1, 6)
        self.builder.clock.now_ms += self.chance.choice((0, 1, 700))
        now_ms = self.builder.clock.now_ms
        made = [
            (f"{self.end + i}:{self.chance.random()}", now_ms - self.chance.randint(0, 50))
            for i in range(count)
        ]
        codec = self.chance.choice((Codec.NONE, Codec.NONE, Codec.LZ4))
        self.builder.leader_epoch += self.chance.random() < 0.05
        self.builder.append(*(row("k", value, time) for value, time in made), codec=codec)
        self.batches[self.end] = self.end + count
        self.rows.update({self.end + i: pair for i, pair in enumerate(made)})
        self.end += count

    def roll(self) -> None:
        self.builder.roll()

    def truncate(self) -> None:
        if self.end == self.start or self.chance.random() < 0.6:
            return
        target = self.chance.randint(self.start, self.end)
        # A cut within a batch removes it whole: the log ends at its base offset.
        self.builder.log.truncate_to(target, self.builder.clock.now_ms)
        for base, end in list(self.batches.items()):
            if end > target:
                target = min(target, base)
                del self.batches[base]
                for offset in range(base, end):
                    del self.rows[offset]
        self.end = target
        self.start = min(self.start, target)

    def delete_records(self) -> None:
        if self.chance.random() < 0.7:
            return
        self.start = self.chance.randint(self.start, self.end)
        self.builder.log.maybe_increment_log_start_offset(self.start, "fuzz")
        self.builder.log.delete_old_segments(self.builder.clock.now_ms)
        sum(self.builder.manager.deletion_slices(self.builder.clock.now_ms))

    def flush(self) -> None:
        self.builder.log.flush(self.builder.clock.now_ms)
        self.builder.manager.checkpoint_recovery_points()

    def reopen_clean(self) -> None:
        self.builder.stop()
        assert verify_log_dir(self.builder.fs, self.builder.root) == []
        self.builder.open()

    def reopen_after_kill(self) -> None:
        self.builder.manager.checkpoint_log_start_offsets()
        self.builder.manager.checkpoint_high_watermarks()
        self.builder.kill().open()

    def look_up(self) -> None:
        log = self.builder.log
        visible = {o: pair for o, pair in self.rows.items() if o >= self.start}
        if not visible:
            return
        target = self.chance.choice(sorted(visible.values()))[1] + self.chance.randint(-3, 3)
        expected = next((o for o, (_, time) in sorted(visible.items()) if time >= target), None)
        found = log.offset_for_timestamp(target, log.log_end_offset)
        assert (found.offset if found else None) == expected

    def check(self) -> None:
        log = self.builder.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        expected = [(o, v) for o, (v, _) in sorted(self.rows.items()) if o >= self.start]
        assert [(r.offset, (r.value or b"").decode()) for r in self.builder.records()] == expected


@pytest.mark.parametrize("seed", range(25))
def test_a_log_is_the_list_of_its_batches(tmp_path: Path, seed: int) -> None:
    fuzz = Fuzz(tmp_path, seed)
    steps = [
        *[fuzz.append] * 12,
        fuzz.roll,
        fuzz.truncate,
        fuzz.delete_records,
        fuzz.flush,
        fuzz.reopen_clean,
        fuzz.reopen_after_kill,
        fuzz.look_up,
    ]
    for _ in range(120):
        fuzz.chance.choice(steps)()
        if fuzz.chance.random() < 0.3:
            fuzz.check()
    fuzz.check()
    fuzz.reopen_clean()
    fuzz.check()
