"""Power cuts: flushed records survive, and the log is a clean prefix of the sent records."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from kafkapy.record.builder import build_batch
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.storage.log_builder import TOPIC_ID, TP, LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem
from tests.simulation.sim_filesystem import SimFileSystem


def restart_after_crash(builder: LogBuilder, disk: SimFileSystem, seed: int) -> None:
    for log in builder.manager.logs.values():
        log.abandon()
    disk.crash(seed)
    builder.open()


def check_prefix(builder: LogBuilder, sent: list[str], flushed: int) -> None:
    """Offset n holds the n-th value sent, without a gap, and no flushed record is missing."""
    log = builder.log
    assert flushed <= log.log_end_offset <= len(sent)
    assert [(r.offset, (r.value or b"").decode()) for r in builder.records()] == [
        (offset, sent[offset]) for offset in range(log.log_start_offset, log.log_end_offset)
    ]
    assert all(log.producers.state.producers[7].last_sequence >= 0 for _ in sent[:flushed][:1])


def flush(builder: LogBuilder) -> int:
    """Flush as the broker does: fsync, then the recovery point, then its checkpoint."""
    for task in builder.manager.flush_due_logs(builder.clock.now_ms):
        task.fsync()
        task.complete(builder.clock.now_ms)
    builder.manager.checkpoint_recovery_points()
    return builder.log.recovery_point


@pytest.mark.parametrize("seed", range(25))
def test_flushed_records_survive_any_power_cut(seed: int) -> None:
    chance = random.Random(seed)
    disk = SimFileSystem()
    builder = LogBuilder(
        "/logs", disk, seed=seed, segment_bytes="700", index_interval_bytes="100", flush_ms="0",
        retention_bytes="3000", file_delete_delay_ms="0",
    )  # fmt: skip
    sent: list[str] = []
    flushed = sequence = 0
    for _ in range(80):
        step = chance.random()
        builder.clock.now_ms += 1
        if step < 0.8:
            count = chance.randint(1, 3)
            base = builder.produce(7, sequence, count).first_offset
            assert base == len(sent)
            sent += [f"7/{sequence + i}" for i in range(count)]
            sequence += count
        elif step < 0.88:
            flushed = flush(builder)
        elif step < 0.92:
            sum(builder.manager.retention_slices(builder.clock.now_ms))
            sum(builder.manager.deletion_slices(builder.clock.now_ms))
            builder.manager.checkpoint_log_start_offsets()
        elif step < 0.95:
            builder.reopen()
            flushed = len(sent)
            disk.crash(seed)
            builder.kill().open()
        else:
            restart_after_crash(builder, disk, chance.randrange(1 << 30))
            check_prefix(builder, sent, flushed)
            del sent[builder.log.log_end_offset :]
            sequence = len(sent)
            builder.log.update_high_watermark(builder.log.log_end_offset)
    restart_after_crash(builder, disk, seed)
    check_prefix(builder, sent, flushed)
    builder.stop()
    assert verify_log_dir(disk, "/logs") == []


@pytest.mark.parametrize("seed", range(15))
def test_compaction_survives_any_power_cut(seed: int) -> None:
    """Whichever step of the replacement is cut, the last value of every flushed key survives."""
    chance = random.Random(seed)
    disk = SimFileSystem()
    builder = LogBuilder(
        "/logs", disk, seed=seed, cleanup_policy="compact", segment_bytes="900", flush_ms="0",
        min_cleanable_dirty_ratio="0.01", file_delete_delay_ms="0",
    )  # fmt: skip
    sent: list[tuple[str, str]] = []
    for _ in range(12):
        for _ in range(chance.randint(1, 25)):
            key, value = f"k{chance.randrange(8)}", f"v{len(sent)}"
            builder.append(row(key, value))
            sent.append((key, value))
        flushed = flush(builder)
        cleaner = LogCleaner(disk, builder.manager, 24 * chance.choice((4, 1000)))
        cleaning = cleaner.next_cleaning(builder.clock.now_ms)
        cut = _Cut(disk, chance.randrange(25))
        try:
            if cleaning is not None:
                cut.arm()
                cleaning.run()
                cleaner.commit(cleaning, builder.clock.now_ms)
        except _PowerCut:
            cut.disarm()
        cut.disarm()
        restart_after_crash(builder, disk, chance.randrange(1 << 30))
        end = builder.log.log_end_offset
        assert flushed <= end <= len(sent)
        del sent[end:]
        found = builder.records()
        assert [r.offset for r in found] == sorted({r.offset for r in found})
        assert all(
            ((r.key or b"").decode(), (r.value or b"").decode()) == sent[r.offset] for r in found
        )
        latest = {(r.key or b"").decode(): (r.value or b"").decode() for r in found}
        assert latest == dict(sent)
        builder.log.update_high_watermark(end)
    builder.stop()
    assert verify_log_dir(disk, "/logs") == []


@pytest.mark.parametrize("seed", range(10))
def test_no_power_cut_brings_back_what_was_truncated(seed: int) -> None:
    """They stay gone even behind batches of the same size that replace some of them."""
    chance = random.Random(seed)
    disk = SimFileSystem()
    builder = LogBuilder("/logs", disk, seed=seed)
    for i in range(10):
        builder.append(row("k", f"old{i}"))
    flush(builder)
    cut = chance.randrange(2, 8)
    builder.log.truncate_to(cut)
    builder.leader_epoch = 1
    kept = [f"old{i}" for i in range(cut)]
    wanted = kept + [f"new{i}" for i in range(cut, 10 - chance.randrange(1, 3))]
    for value in wanted[cut:]:
        builder.append(row("k", value))
    restart_after_crash(builder, disk, seed)
    found = builder.values()
    assert found == wanted[: len(found)]
    assert len(found) >= cut


def test_a_file_is_as_old_as_its_last_write() -> None:
    """A restarting broker uses the file's age: it recalls the batches of recently written logs."""
    clock = ManualClock()
    disk = SimFileSystem(lambda: clock.now_ms)
    builder = LogBuilder("/logs", disk, clock=clock)
    for sequence in range(3):
        builder.produce(7, sequence)
    builder.stop()
    clock.now_ms += 60_000
    builder.open()
    assert builder.produce(7, 0).duplicate
    assert builder.log.segments.active.modified_ms() == clock.now_ms - 60_000
    assert not builder.produce(7, 3).duplicate
    assert builder.log.segments.active.modified_ms() == clock.now_ms


class _PowerCut(Exception):
    """The power is cut: no later write reaches the disk."""


class _Cut:
    """Turns the n-th change of names from now on into a power cut."""

    def __init__(self, disk: SimFileSystem, at: int) -> None:
        self._disk = disk
        self._left = at
        self._change = disk._change

    def arm(self) -> None:
        def change(step: object) -> None:
            if self._left == 0:
                raise _PowerCut
            self._left -= 1
            self._change(step)  # type: ignore[arg-type]

        self._disk._change = change  # type: ignore[method-assign]

    def disarm(self) -> None:
        self._disk._change = self._change  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", range(8))
def test_a_flush_from_before_a_truncation_leaves_the_indexes_to_the_next(seed: int) -> None:
    """The segment was closed again during an earlier flush, which did not force the new indexes.
    Neither did the next flush, and the aborted records came back as committed ones."""
    disk = SimFileSystem()
    builder = LogBuilder("/logs", disk).append(count=3).roll()
    log = builder.log
    handle = log.flush_handle()
    log.run_flush(handle)
    log.truncate_to(0, builder.clock.now_ms)
    builder.produce(9, 0, is_transactional=True)
    builder.end_transaction(9, commit=False)
    builder.roll().append()
    log.mark_flushed(handle, builder.clock.now_ms)
    log.flush(builder.clock.now_ms)
    builder.manager.checkpoint_recovery_points()
    restart_after_crash(builder, disk, seed)
    assert [entry.producer_id for entry in builder.log.aborted_transactions(0, 3)] == [9]


@pytest.mark.parametrize("at", range(20))
def test_a_cleaning_that_was_given_up_undoes_no_later_one(at: int) -> None:
    """Files that could not be removed for lack of a descriptor made a start treat segments as not
    replaced yet, although it had removed their sources."""
    disk = SimFileSystem()
    short = ShortFileSystem(disk)  # type: ignore[arg-type]
    configs = {"cleanup_policy": "compact,delete", "min_cleanable_dirty_ratio": "0"}
    builder = LogBuilder("/logs", short, **configs)  # type: ignore[arg-type]
    for i in range(4):
        builder.append(row(f"k{i}", f"v{i}")).append(row("k", "v")).roll()
    builder.append(row("k4", "v4")).log.flush()
    cleaner = LogCleaner(builder.fs, builder.manager)
    cleaning = cleaner.next_cleaning(builder.clock.now_ms)
    assert cleaning is not None
    cleaning.run()
    builder.log.local.close_handles()
    short.descriptors_left = 0
    assert not cleaner.commit(cleaning, builder.clock.now_ms)
    short.descriptors_left = None
    builder.log.maybe_increment_log_start_offset(2, "test")
    assert builder.log.delete_old_segments(builder.clock.now_ms) == 1
    cleaning = cleaner.next_cleaning(builder.clock.now_ms)
    assert cleaning is not None
    cleaning.run()
    cut = _Cut(disk, at)
    cut.arm()
    with suppress(_PowerCut):
        cleaner.commit(cleaning, builder.clock.now_ms)
    cut.disarm()
    restart_after_crash(builder, disk, at)
    values = {(record.value or b"").decode() for record in builder.records()}
    assert values >= {"v1", "v2", "v3", "v", "v4"}


def aborted(disk: SimFileSystem, behind: int = 0) -> LogBuilder:
    """A log with an aborted transaction of producer 9 behind some records, nothing flushed."""
    builder = LogBuilder("/logs", disk, segment_index_bytes="100")
    if behind:
        builder.append(count=behind)
    builder.produce(9, 0, is_transactional=True)
    builder.end_transaction(9, commit=False)
    return builder


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rolls_during_flush", [False, True])
def test_a_segment_closed_after_its_flush_knows_what_was_aborted(
    seed: int, rolls_during_flush: bool
) -> None:
    """Recovery reads the unflushed part, which began with the segment after this one: the aborted
    records came back as committed ones."""
    disk = SimFileSystem()
    builder = aborted(disk)
    handle = builder.log.flush_handle()
    if rolls_during_flush:
        builder.roll()
    builder.log.run_flush(handle)
    builder.log.mark_flushed(handle, builder.clock.now_ms)
    builder.manager.checkpoint_recovery_points()
    if not rolls_during_flush:
        builder.roll()
    builder.append()
    restart_after_crash(builder, disk, seed)
    assert [entry.producer_id for entry in builder.log.aborted_transactions(0, 2)] == [9]


@pytest.mark.parametrize("seed", range(8))
def test_a_segment_closed_after_its_flush_forgot_what_was_truncated(seed: int) -> None:
    """The index hid committed records of a producer whose aborted ones were truncated."""
    disk = SimFileSystem()
    builder = aborted(disk, behind=3)
    builder.roll().append()
    builder.log.flush()
    builder.log.truncate_to(3, builder.clock.now_ms)
    builder.append(count=5).log.flush()
    builder.manager.checkpoint_recovery_points()
    builder.roll().append()
    restart_after_crash(builder, disk, seed)
    assert builder.log.aborted_transactions(0, 9) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_segment_closed_after_its_truncation_forgot_what_was_aborted(seed: int) -> None:
    """Nothing was appended between the truncation and the next segment."""
    disk = SimFileSystem()
    builder = aborted(disk, behind=3)
    builder.log.flush()
    builder.log.truncate_to(3, builder.clock.now_ms)
    builder.roll()
    builder.produce(9, 0, count=3, is_transactional=True)
    restart_after_crash(builder, disk, seed)
    assert builder.log.aborted_transactions(0, 9) == []


@pytest.mark.parametrize("seed", range(16))
def test_a_segment_closed_after_its_recovery_knows_what_was_aborted(seed: int) -> None:
    """Recovery rewrites the index of aborted transactions, which was flushed before."""
    disk = SimFileSystem()
    builder = aborted(disk)
    builder.log.flush()
    builder.manager.checkpoint_recovery_points()
    restart_after_crash(builder, disk, seed)
    builder.roll()
    restart_after_crash(builder, disk, seed)
    assert [entry.producer_id for entry in builder.log.aborted_transactions(0, 2)] == [9]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rolls_during_flush", [False, True])
def test_a_segment_closed_after_its_flush_has_no_preallocated_bytes(
    seed: int, rolls_during_flush: bool
) -> None:
    """Consumers and followers stopped at zeros that cannot be batches."""
    disk = SimFileSystem()
    builder = LogBuilder(
        "/logs", disk, segment_index_bytes="100", segment_bytes="1000", preallocate="true"
    ).append(count=3)
    handle = builder.log.flush_handle()
    builder.log.run_flush(handle)
    if rolls_during_flush:
        builder.roll()
    builder.log.mark_flushed(handle, builder.clock.now_ms)
    builder.manager.checkpoint_recovery_points()
    if not rolls_during_flush:
        builder.roll()
    builder.append()
    restart_after_crash(builder, disk, seed)
    assert [record.offset for record in builder.records()][:3] == [0, 1, 2]


@pytest.mark.parametrize("seed", [34, 39, 147, 179])
def test_a_segment_closed_after_its_recovery_has_no_entries_of_lost_batches(seed: int) -> None:
    """A time index that was emptied and rewritten kept its old entries: a consumer that began at
    a time missed records."""
    disk = SimFileSystem()
    builder = LogBuilder("/logs", disk, segment_index_bytes="48", index_interval_bytes="0")
    for i in range(3):
        builder.append(row("k", "x" * (20 + i * 7), 1000 + i))
    builder.roll()
    restart_after_crash(builder, disk, seed)
    for timestamp in (2000, 2001, 2005, 2002):
        builder.append(row("k", "y" * 50, timestamp))
    builder.log.flush()
    builder.manager.checkpoint_recovery_points()
    builder.roll().append()
    restart_after_crash(builder, disk, seed + 1)
    found = builder.log.offset_for_timestamp(1001, builder.log.log_end_offset)
    assert found is not None
    expected = next(record.offset for record in builder.records() if record.timestamp >= 1001)
    assert found.offset == expected


_SMALL_INDEXES = {"segment.index.bytes": "100"}


@pytest.mark.parametrize("at", range(24))
@pytest.mark.parametrize("dirs", [("a", "b"), ("b", "a")])
def test_a_crash_at_the_end_of_a_move_brings_back_no_deleted_records(
    at: int, dirs: tuple[str, str]
) -> None:
    """Before the copy became the log, the other directory's checkpoints did not have its start and
    high watermark."""
    disk = SimFileSystem()
    manager = open_two(disk, dirs)
    log = manager.get_or_create_log(TP, TOPIC_ID, _SMALL_INDEXES, True)
    for i in range(6):
        log.append_as_leader(build_batch([row("k", f"v{i}")]), 0, 0)
    log.update_high_watermark(6)
    other = next(path for path in manager.live_log_dirs if path != log.log_dir)
    manager.future_logs.move(TP, other)
    while manager.future_logs.copy(TP, 0):
        pass
    log.maybe_increment_log_start_offset(4, "DeleteRecords")
    log.flush()
    manager.checkpoint_all()
    cut = _Cut(disk, at)
    cut.arm()
    with suppress(_PowerCut):
        manager.future_logs.replace(TP, 0)
    cut.disarm()
    manager.logs[TP].abandon()
    disk.crash(at)
    log = open_two(disk, dirs).logs[TP]
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 6, 6)


@pytest.mark.parametrize("seed", range(4))
def test_no_power_cut_brings_back_a_move_that_was_cancelled(seed: int) -> None:
    """The cancelled move continued after the next start."""
    disk = SimFileSystem()
    manager = open_two(disk, ("a", "b"))
    source = manager.get_or_create_log(TP, TOPIC_ID, _SMALL_INDEXES, True).log_dir
    manager.future_logs.move(TP, next(path for path in manager.live_log_dirs if path != source))
    manager.checkpoint_all()
    manager.future_logs.move(TP, source)
    manager.logs[TP].abandon()
    disk.crash(seed)
    assert not open_two(disk, ("a", "b")).future_logs.logs


def open_two(disk: SimFileSystem, dirs: tuple[str, str]) -> LogManager:
    """Start a log manager on two directories."""
    manager = LogManager(disk, [f"/{name}" for name in dirs], {}, ManualClock(), SeededRandom(0))
    manager.open()
    manager.load({TP.topic: _SMALL_INDEXES})
    return manager
