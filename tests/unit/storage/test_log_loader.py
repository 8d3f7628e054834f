"""Opening a log after a clean stop, after a kill, and after damage."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.verify import verify_log_dir
from tests.harness.storage.batches import flip
from tests.harness.storage.log_builder import LogBuilder, row

LAST = 60


def filled(tmp_path: Path) -> LogBuilder:
    """60 records in batches of 2 over several segments, written by an idempotent producer."""
    builder = LogBuilder(tmp_path, segment_bytes="1000", index_interval_bytes="150")
    for sequence in range(0, LAST, 2):
        builder.produce(9, sequence, count=2)
    return builder


def active_log(builder: LogBuilder) -> Path:
    return builder.path(f"{builder.bases()[-1]:020d}.log")


def reopened_after(builder: LogBuilder) -> LogBuilder:
    builder.open()
    end = builder.log.log_end_offset
    assert builder.values() == [f"9/{i}" for i in range(end)]
    state = builder.log.producers.state.producers
    assert state[9].last_sequence == end - 1
    again = builder.produce(9, end - 2, count=2)
    assert again.duplicate
    assert builder.produce(9, end).first_offset == end
    builder.stop()
    assert verify_log_dir(builder.fs, builder.root) == []
    return builder


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    builder = filled(tmp_path).kill()
    reopened_after(builder)


@pytest.mark.parametrize("cut", [1, 2, 60, 61, 100, 400])
def test_a_torn_tail_is_cut_to_the_last_whole_batch(
    tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    builder = filled(tmp_path)
    path = active_log(builder)
    size = path.stat().st_size
    builder.kill()
    with path.open("r+b") as file:
        file.truncate(max(size - cut, 0))
    reopened_after(builder)
    assert f"[orders-0] recovery cut {path} at position" in caplog.text
    assert "bytes dropped (the last batch is cut off)" in caplog.text


@pytest.mark.parametrize("seed", range(12))
def test_noise_at_the_end_costs_only_what_it_hit(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    builder = filled(tmp_path)
    path = active_log(builder)
    base = builder.bases()[-1]
    batch_size = builder.log.segments.active.find(base)[1]  # type: ignore[index]
    builder.kill()
    size = path.stat().st_size
    noise = chance.randint(1, size)
    with path.open("r+b") as file:
        file.seek(size - noise)
        file.write(chance.randbytes(noise))
    builder.open()
    whole = base + 2 * ((size - noise) // batch_size)
    assert builder.log.log_end_offset == whole
    builder.kill()
    if whole > base:
        reopened_after(builder)


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_lost_index_is_made_again(tmp_path: Path, clean: bool, kind: str, zeros: bool) -> None:
    builder = filled(tmp_path)
    paths = [builder.path(f"{base:020d}{kind}") for base in builder.bases()]
    (builder.stop if clean else builder.kill)()
    for path in paths:
        if zeros:
            path.write_bytes(bytes(max(path.stat().st_size, 24)))
        else:
            path.unlink()
    builder.open()
    builder.stop()
    assert verify_log_dir(builder.fs, builder.root) == []
    reopened_after(builder)
    assert builder.log.log_end_offset == LAST + 1


def test_everything_after_a_damaged_segment_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = filled(tmp_path)
    second, third = builder.bases()[1:3]
    builder.kill()
    path = tmp_path / f"orders-0/{second:020d}.log"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 1)
        file.write(b"\xff")
    builder.open()
    assert builder.log.log_end_offset == third - 2
    assert builder.bases() == [0, second]
    assert f"recovery dropped the segment {tmp_path}/orders-0/{third:020d}.log" in caplog.text
    builder.kill()
    reopened_after(builder)


def test_waste_after_a_whole_segment_costs_nothing(tmp_path: Path) -> None:
    builder = filled(tmp_path)
    bases = builder.bases()
    builder.kill()
    with (tmp_path / "orders-0/00000000000000000000.log").open("ab") as file:
        file.write(bytes(500))
    builder.open()
    assert (builder.log.log_end_offset, builder.bases()) == (LAST, bases)
    builder.kill()
    reopened_after(builder)


def test_a_segment_that_lost_its_tail_whole_takes_the_later_ones_along(tmp_path: Path) -> None:
    builder = filled(tmp_path)
    second, third = builder.bases()[1:3]
    found = builder.log.segments[1].find(third - 2)
    assert found is not None
    builder.kill()
    with (tmp_path / f"orders-0/{second:020d}.log").open("r+b") as file:
        file.truncate(found[0])
    builder.open()
    assert (builder.log.log_end_offset, builder.bases()) == (third - 2, [0, second])


def test_a_compacted_log_ends_too_where_a_closed_segment_lost_its_tail(tmp_path: Path) -> None:
    """Compaction makes gaps only below the recovery point that is on disk."""
    builder = with_gaps(tmp_path)
    before = [(r.offset, r.value) for r in builder.records()]
    builder.append(row("k8", "v32")).append(row("k9", "v33")).roll().append(row("k8", "v34"))
    closed, active = builder.bases()[-2:]
    found = builder.log.segments[-2].find(active - 1)
    assert found is not None
    builder.kill()
    with (tmp_path / f"orders-0/{closed:020d}.log").open("r+b") as file:
        file.truncate(found[0])
    builder.open()
    assert [(r.offset, r.value) for r in builder.records()] == [*before, (32, b"v32")]
    assert builder.log.log_end_offset == active - 1
    assert builder.bases()[-1] == closed


def test_below_the_recovery_point_nothing_is_read_again(tmp_path: Path) -> None:
    builder = filled(tmp_path)
    builder.log.flush()
    builder.manager.checkpoint_recovery_points()
    first = builder.path("00000000000000000000.log")
    builder.kill()
    with first.open("r+b") as file:
        file.seek(70)
        file.write(b"\xff")
    builder.open()
    assert builder.log.log_end_offset == LAST
    assert builder.log.recovery_point == LAST


def test_recovery_alone_makes_nothing_durable(tmp_path: Path) -> None:
    builder = filled(tmp_path).reopen(clean=False)
    assert builder.log.recovery_point == 0
    builder.log.flush()
    assert builder.log.recovery_point == LAST


def test_a_clean_stop_with_a_damaged_end_is_recovered_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = filled(tmp_path).stop()
    path = active_log(builder)
    with path.open("ab") as file:
        file.write(b"garbage" * 20)
    reopened_after(builder)
    assert "recovery cut" in caplog.text


def test_an_index_without_its_log_goes(tmp_path: Path) -> None:
    builder = filled(tmp_path).stop()
    stray = tmp_path / "orders-0/00000000000000000999.index"
    stray.write_bytes(bytes(8))
    builder.open()
    assert not stray.exists()
    assert builder.log.log_end_offset == LAST


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=5)
    builder.log.maybe_increment_log_start_offset(4, "test")
    builder.stop()
    for path in (tmp_path / "orders-0").glob("*.log"):
        path.write_bytes(b"")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    builder.open()
    log = builder.log
    assert (log.log_start_offset, log.log_end_offset, builder.bases()) == (4, 4, [4])
    assert (log.epochs.entries(), list(log.producers.state)) == ([], [])


def test_epochs_beyond_the_end_are_forgotten(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=2)
    builder.log.assign_epoch_start(5, 2)
    builder.leader_epoch = 5
    builder.append(row())
    path = active_log(builder)
    builder.kill()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    builder.open()
    assert builder.log.epochs.entries() == [(0, 0)]


def test_epochs_come_back_where_a_power_cut_took_what_they_began_with(tmp_path: Path) -> None:
    """Records were deleted up to 2, so the first epoch begins there; what is left is older."""
    builder = LogBuilder(tmp_path).append(count=2)
    size = active_log(builder).stat().st_size
    builder.append().log.maybe_increment_log_start_offset(2, "test")
    assert builder.log.epochs.entries() == [(0, 2)]
    path = active_log(builder)
    builder.kill()
    with path.open("r+b") as file:
        file.truncate(size)
    builder.open()
    assert (builder.log.log_end_offset, builder.log.epochs.entries()) == (2, [(0, 0)])


def test_a_log_that_begins_earlier_after_a_power_cut_has_the_epochs_of_all_its_batches(
    tmp_path: Path,
) -> None:
    """Records were deleted up to 3, which the power cut undid. A follower that is cut below 3 then
    must still know the epoch of its batches."""
    builder = LogBuilder(tmp_path).append()
    builder.leader_epoch = 2
    builder.append(count=3).log.maybe_increment_log_start_offset(3, "test")
    builder.leader_epoch = 5
    builder.append()
    assert builder.log.epochs.entries() == [(2, 3), (5, 4)]
    builder.kill()
    builder.open()
    assert builder.log.log_start_offset == 0
    assert builder.log.epochs.entries() == [(0, 0), (2, 1), (5, 4)]
    builder.log.truncate_to(1)
    assert builder.log.epochs.entries() == [(0, 0)]


def test_lost_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append()
    builder.leader_epoch = 6
    builder.append().kill()
    (tmp_path / "orders-0/leader-epoch-checkpoint").unlink()
    builder.open()
    assert builder.log.epochs.entries() == [(0, 0), (6, 1)]


LOST = {"missing": None, "empty": b"", "no rows": b"0\n0\n", "malformed": b"0\n7\nnonsense"}
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "orders-0/leader-epoch-checkpoint",
)


def lose(path: Path, content: bytes | None) -> None:
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)


def test_a_malformed_epoch_file_is_made_again_from_the_whole_log(tmp_path: Path) -> None:
    """Also of what lies below the recovery point, and after a clean stop."""
    for clean in (True, False):
        for name, content in LOST.items():
            builder = LogBuilder(tmp_path / f"{name}-{clean}", segment_bytes="300")
            for epoch in (0, 0, 0, 4, 4, 4, 9):
                builder.leader_epoch = epoch
                builder.append()
            builder.log.flush()
            builder.manager.checkpoint_all()
            (builder.stop if clean else builder.kill)()
            lose(Path(builder.root) / "orders-0/leader-epoch-checkpoint", content)
            builder.open()
            assert builder.log.epochs.entries() == [(0, 0), (4, 3), (9, 6)], (name, clean)
            builder.kill()


def with_gaps(root: Path) -> LogBuilder:
    """Offsets 0 to 29 of three keys and one that is never repeated, compacted; two more behind."""
    builder = LogBuilder(
        root, cleanup_policy="compact", segment_bytes="600", min_cleanable_dirty_ratio="0.01"
    )
    builder.append(row("once", "v0"))
    for i in range(1, 30):
        builder.append(row(f"k{i % 3}", f"v{i}"))
    builder.roll().log.flush()
    cleaner = LogCleaner(builder.fs, builder.manager, 100_000)
    cleaning = cleaner.next_cleaning(builder.clock.now_ms)
    assert cleaning is not None
    cleaning.run()
    assert cleaner.commit(cleaning, builder.clock.now_ms)
    builder.append(row("k9", "v30")).append(row("k9", "v31"))
    segments = list(builder.log.segments)
    assert any(a.next_offset() < b.base_offset for a, b in pairwise(segments)), "no gap"
    builder.manager.checkpoint_all()
    return builder


@pytest.mark.parametrize("name", [*CHECKPOINTS, "all of them"])
@pytest.mark.parametrize("kind", LOST)
def test_a_lost_checkpoint_and_a_crash_cost_a_compacted_log_nothing(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Kafka's cleaner leaves no rows behind, because it writes no recovery points."""
    builder = with_gaps(tmp_path)
    before = [(r.offset, r.value) for r in builder.records()]
    epochs = builder.log.epochs.entries()
    builder.kill()
    for lost in CHECKPOINTS if name == "all of them" else [name]:
        lose(tmp_path / lost, LOST[kind])
    for _ in range(3):
        builder.open()
        assert [(r.offset, r.value) for r in builder.records()] == before
        assert (builder.log.log_end_offset, builder.log.epochs.entries()) == (32, epochs)
        builder.manager.checkpoint_all()
        builder.kill()


@pytest.mark.parametrize("kind", [kind for kind in LOST if kind != "no rows"])
def test_a_log_that_was_compacted_once_keeps_its_segments_too(tmp_path: Path, kind: str) -> None:
    """Its policy has changed to `delete`; the second crash finds a checkpoint again."""
    builder = with_gaps(tmp_path)
    before = [(r.offset, r.value) for r in builder.records()]
    builder.kill()
    builder.configs["cleanup.policy"] = "delete"
    lose(tmp_path / "recovery-point-offset-checkpoint", LOST[kind])
    for _ in range(2):
        builder.open()
        assert [(r.offset, r.value) for r in builder.records()] == before
        builder.manager.checkpoint_all()
        builder.kill()


def test_damage_in_a_compacted_log_costs_what_follows_it(tmp_path: Path) -> None:
    """A gap is no damage, but damage is: as Kafka does."""
    builder = with_gaps(tmp_path)
    first, second, *_ = builder.bases()
    size = builder.log.segments.first.size
    builder.kill()
    with (tmp_path / f"orders-0/{first:020d}.log").open("r+b") as file:
        file.truncate(size - 1)
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    builder.open()
    assert builder.bases() == [first]
    assert builder.log.log_end_offset < second


def with_an_abort(tmp_path: Path, *, is_closed: bool) -> tuple[LogBuilder, Path]:
    """A transaction that begins in one segment and is aborted in the next, whose index is bad."""
    builder = LogBuilder(tmp_path)
    builder.produce(7, 0, is_transactional=True)
    builder.roll().append().end_transaction(7, False)
    if is_closed:
        builder.roll().append().log.flush()
        builder.manager.checkpoint_all()
    path = builder.path(f"{1:020d}.txnindex")
    return builder, path


def aborted(builder: LogBuilder) -> list[tuple[int, int, int]]:
    found = builder.log.aborted_transactions(0, builder.log.log_end_offset)
    return [(one.producer_id, one.first_offset, one.last_offset) for one in found]


@pytest.mark.parametrize(
    ("is_closed", "is_clean"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_a_corrupt_index_of_transactions_is_made_again(
    tmp_path: Path, is_closed: bool, is_clean: bool
) -> None:
    """Readers of committed records got an error there for good, and nothing was compacted."""
    builder, path = with_an_abort(tmp_path, is_closed=is_closed)
    expected = [(7, 0, 2)]
    assert aborted(builder) == expected
    (builder.stop if is_clean else builder.kill)()
    path.write_bytes(path.read_bytes()[:-1])
    assert aborted(builder.open()) == expected
    builder.log.update_high_watermark(builder.log.log_end_offset)
    assert builder.log.first_unstable_offset is None
    assert aborted(builder.reopen()) == expected
    builder.stop()
    assert verify_log_dir(builder.fs, builder.root) == []


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_corrupt_index_stays_so_where_transactions_cannot_be_read(
    tmp_path: Path, damaged: int
) -> None:
    """Aborted records would seem to be committed."""
    builder, path = with_an_abort(tmp_path, is_closed=True)
    builder.stop()
    path.write_bytes(path.read_bytes()[:-1])
    builder.path(f"{1:020d}.snapshot").unlink()
    flip(builder.path(f"{damaged:020d}.log"), 8 * 8)  # the length of the first batch
    builder.open()
    with pytest.raises(ApiError, match="txnindex is corrupt"):
        aborted(builder)
