"""One log file: append, find, scan; and how many are open."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.builder import build_batch
from kafkapy.storage import file_records
from kafkapy.storage.file_records import (
    REGION_BYTES_MIN,
    FilePool,
    FileRecords,
    FileRegion,
    scan_batches,
)
from kafkapy.storage.filesystem import OsFile, OsFileSystem
from tests.harness.plugins import leaks
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.legacy_messages import message
from tests.harness.storage.log_builder import row
from tests.harness.storage.short_filesystem import ShortFileSystem
from tests.simulation.sim_filesystem import SimFileSystem

FS = Disk()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def filled(tmp_path: Path, sizes: list[int], pool: FilePool | None = None) -> FileRecords:
    """Batches of so many records each, at consecutive offsets from 0."""
    records = FileRecords.create(pool or FilePool(FS), str(tmp_path / "f.log"))
    base = 0
    for count in sizes:
        batch = build_batch([row(value="x" * 30)] * count, base_offset=base)
        records.append([batch[:16], batch[16:]], len(batch))
        base += count
    return records


def test_append_says_where(tmp_path: Path) -> None:
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    assert records.append([b"ab", b"c"], 3) == 0
    assert records.append([b"def"], 3) == 3
    assert records.read(1, 100) == b"bcdef"
    assert records.size == 6


@pytest.mark.parametrize("for_good", [False, True])
def test_a_failed_append_counts_for_nothing(tmp_path: Path, for_good: bool) -> None:
    disk = FaultyFileSystem(FS, for_good=for_good)
    records = filled(tmp_path, [2], FilePool(disk))
    size = records.size
    disk.fail_at = disk.changes + 1
    with pytest.raises(OSError) as caught:
        records.append([b"x" * 100], 100)
    assert caught.value.errno == errno.ENOSPC
    assert records.size == size
    assert (tmp_path / "f.log").stat().st_size == (size + 50 if for_good else size)


def test_a_long_span_stays_in_its_file(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1024
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    records.append([content], len(content))
    assert records.region(3, REGION_BYTES_MIN - 1) == content[3 : 3 + REGION_BYTES_MIN - 1]
    region = records.region(3, REGION_BYTES_MIN)
    assert isinstance(region, FileRegion)
    assert len(region) == REGION_BYTES_MIN
    records.close_descriptor()  # another file's use may close it meanwhile
    assert region.take(10) == content[3:13]
    with open(tmp_path / "target", "wb") as target:  # as good as a socket
        region.send(target.fileno())
    assert len(region) == 0
    assert (tmp_path / "target").read_bytes() == content[13 : 3 + REGION_BYTES_MIN]


def test_a_span_that_is_held_outlives_its_file_and_another_of_its_name(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1024
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    records.append([content], len(content))
    region = FileRegion(records, 0, len(content))
    before = leaks.open_resources()
    region.hold()
    region.hold()
    assert len(leaks.opened_since(before)) == 1
    records.close_handle()
    (tmp_path / "f.log").unlink()
    (tmp_path / "f.log").write_bytes(bytes(len(content)))
    assert region.take(100_000) == content[:100_000]
    with open(tmp_path / "target", "wb") as target:
        region.send(target.fileno())
    assert (tmp_path / "target").read_bytes() == content[100_000:]
    del region
    assert leaks.opened_since(before) == []


def test_spans_of_one_file_hold_it_with_one_descriptor(tmp_path: Path) -> None:
    """However many rows, responses and connections they are of."""
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    records.append([bytes(200_000)], 200_000)
    opened = open_files()
    regions = [FileRegion(records, 0, 100_000) for _ in range(100)]
    for region in regions:
        region.hold()
    assert open_files() == opened + 1
    records.close_handle()
    del region, regions[1:]
    assert regions[0].take(5) == bytes(5)
    regions.clear()
    assert open_files() == opened - 1
    again = FileRegion(records, 0, 100_000)
    again.hold()
    assert again.take(5) == bytes(5)


def test_files_that_are_held_are_bounded(tmp_path: Path) -> None:
    """Responses that clients do not read must leave file descriptors for other clients."""
    pool = FilePool(FS, limit=8)
    files = [FileRecords.create(pool, str(tmp_path / f"{n}.log")) for n in range(6)]
    regions = []
    for records in files:
        records.append([bytes(100_000)], 100_000)
        regions.append(FileRegion(records, 0, 100_000))
    for region in regions[: pool.held_max]:
        region.hold()
    assert pool.held_max == 4
    with pytest.raises(OSError) as refused:
        regions[-1].hold()
    assert refused.value.errno == errno.EMFILE
    FileRegion(files[0], 0, 100_000).hold()  # is held already
    del region, regions[0]
    regions[-1].hold()


class FewDescriptors(OsFileSystem):
    """Opens a file only while the process has less than `limit` descriptors."""

    limit = 1 << 20

    def open(self, path: str, create: bool = False) -> OsFile:
        if open_files() >= self.limit:
            raise OSError(errno.EMFILE, "Too many open files", path)
        return super().open(path, create)


def test_a_pool_closes_files_of_its_own_when_the_process_has_no_descriptor_left(
    tmp_path: Path,
) -> None:
    fs = FewDescriptors()
    pool = FilePool(fs, limit=100)
    files = [FileRecords.create(pool, str(tmp_path / f"{n}.log")) for n in range(4)]
    for records in files:
        records.append([b"abc"], 3)
    files[3].close_handle()
    fs.limit = opened = open_files()
    assert files[3].read(0, 3) == b"abc"
    assert open_files() == opened
    for records in files:
        records.close_handle()
    fs.limit = 0
    with pytest.raises(OSError, match="Too many open files"):
        files[0].read(0, 3)


def test_a_span_that_was_cut_meanwhile_is_told(tmp_path: Path) -> None:
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    records.append([bytes(200_000)], 200_000)
    region = FileRegion(records, 50_000, 100_000)
    records.truncate(100_000)
    with pytest.raises(OSError, match=r"f\.log was cut before position 150000"):
        region.take(100_000)
    records.truncate(50_000)
    with open(tmp_path / "target", "wb") as target, pytest.raises(OSError, match="was cut before"):
        region.send(target.fileno())


def test_a_span_is_not_sent_with_what_took_its_place(tmp_path: Path) -> None:
    """A follower may have appended other records there, of the next leader."""
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    records.append([bytes(200_000)], 200_000)
    below, across = FileRegion(records, 0, 100_000), FileRegion(records, 0, 100_001)
    for region in (below, across):
        region.hold()
        assert region.take(50_000) == bytes(50_000)
    records.truncate_durably(100_000)
    records.append([b"x" * 100_000], 100_000)
    assert below.take(50_000) == bytes(50_000)
    with pytest.raises(OSError, match="was cut before"):
        across.take(1)
    with open(tmp_path / "target", "wb") as target, pytest.raises(OSError, match="was cut before"):
        across.send(target.fileno())
    assert FileRegion(records, 100_000, 100_000).take(1) == b"x"


def test_preallocated_bytes_do_not_count(tmp_path: Path) -> None:
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"), 1000)
    records.append([b"abc"], 3)
    assert (records.size, (tmp_path / "f.log").stat().st_size) == (3, 1000)
    records.truncate(3)
    assert (tmp_path / "f.log").stat().st_size == 3


@pytest.mark.parametrize("search_bytes", [61, 100, 4096])
def test_find_from_any_position(
    tmp_path: Path, search_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_records, "_SEARCH_BYTES", search_bytes)
    records = filled(tmp_path, [1, 4, 2, 7])
    starts = [(position, header) for position, header in records.headers()]
    for target in range(14):
        expected = next((p, h) for p, h in starts if h.last_offset >= target)
        found = records.find(target, 0)
        assert found == (expected[0], expected[1].size, expected[1].base_offset)
        assert records.find(target, expected[0]) == found
    assert records.find(14, 0) is None


def test_old_messages_are_found_down_to_the_smallest(tmp_path: Path) -> None:
    records = FileRecords.create(FilePool(FS), str(tmp_path / "f.log"))
    for offset in range(3):
        data = message(0, offset, None, None)
        assert len(data) == 26
        records.append([data], len(data))
    assert [records.find(offset, 0) for offset in range(4)] == [
        (0, 26, 0), (26, 26, 1), (52, 26, 2), None,
    ]  # fmt: skip


@pytest.mark.parametrize("damage", [bytes(12), b"\x7f" * 12, bytes(8) + (13).to_bytes(4, "big")])
def test_damage_ends_a_search(tmp_path: Path, damage: bytes) -> None:
    records = filled(tmp_path, [1, 1, 1])
    second = records.size // 3
    with (tmp_path / "f.log").open("r+b") as file:
        file.seek(second)
        file.write(damage)
    assert records.find(0, 0) is not None
    for search in (lambda: records.find(2, 0), lambda: list(records.headers())):
        with pytest.raises(ApiError) as caught:
            search()
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("scan_bytes", [64, 300, 1 << 20])
def test_scan_gives_whole_batches_and_stops_at_a_cut(
    tmp_path: Path, scan_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_records, "_SCAN_BYTES", scan_bytes)
    records = filled(tmp_path, [1, 20, 2, 1])
    whole = records.read(0, records.size)
    found = list(scan_batches(records.handle(), 0, records.size))
    assert b"".join(bytes(view) for _, _, view in found) == whole
    assert [header.base_offset for _, header, _ in found] == [0, 1, 21, 23]
    cut = list(scan_batches(records.handle(), 0, records.size - 1))
    assert [header.base_offset for _, header, _ in cut] == [0, 1, 21]


def test_only_so_many_files_are_open(tmp_path: Path) -> None:
    pool = FilePool(FS, limit=3)
    files = [FileRecords.create(pool, f"{tmp_path}/{i}.log") for i in range(6)]
    for i, records in enumerate(files):
        records.append([b"%d" % i], 1)
    assert sum(records._file is not None for records in files) <= 3
    assert [records.read(0, 9) for records in files] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert sum(records._file is not None for records in files) <= 3
    for records in files:
        records.close_handle()
    assert not pool._open_files


def test_logs_take_at_most_half_of_what_the_process_may_open() -> None:
    assert FilePool(FS).limit <= FS.open_files_limit() // 2
    assert FilePool(SimFileSystem()).limit == 32


def test_a_file_in_use_gets_a_second_chance(tmp_path: Path) -> None:
    pool = FilePool(FS, limit=2)
    busy, idle, new = (FileRecords(pool, f"{tmp_path}/{i}.log", 0) for i in range(3))
    for records in (busy, idle, new):
        Path(records.path).touch()
    busy.handle()
    idle.handle()
    idle.recently_used = False
    new.handle()
    assert [r._file is not None for r in (busy, idle, new)] == [True, False, True]


def test_without_descriptors_the_pool_closes_another_file(tmp_path: Path) -> None:
    fs = ShortFileSystem(FS)
    pool = FilePool(fs)
    fs.descriptors_left = 2
    files = [FileRecords.create(pool, str(tmp_path / f"{i}.log")) for i in range(4)]
    for i, records in enumerate(files):
        records.append([b"%d" % i], 1)
    assert [records.read(0, 9) for records in files] == [b"0", b"1", b"2", b"3"]
    for records in files:
        records.close_handle()
    assert fs.descriptors_left == 2
    fs.descriptors_left = 0
    with pytest.raises(OSError, match="Too many open files"):
        files[0].read(0, 1)
