"""segments: files that our storage engine wrote, found and read without it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record import columns
from kafkapy.spark.source.pushdown import Bounds, Interval
from kafkapy.spark.source.segments import Replica, find_replicas, longest_replicas, read_segment
from kafkapy.spark.source.source_columns import COLUMNS
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.log_builder import LogBuilder, row

ORDERS = TopicPartition("orders", 0)


def replica(root: Path) -> Replica:
    (found,) = find_replicas([str(root)])
    return found


def values(
    one: Replica, bounds: Bounds | None = None, *, lax: bool = False, skip_aborted: bool = False
) -> list[str]:
    given = bounds or Bounds()
    return [
        (value or b"").decode().strip()
        for segment in one.segments(given, skip_aborted=skip_aborted)
        for batch in read_segment(segment, given, columns=COLUMNS, skip_corrupt=lax)
        for value in batch.column("value").to_pylist()
    ]


def test_every_record_of_every_segment(tmp_path: Path) -> None:
    LogBuilder(tmp_path).append(count=3).roll().append(count=2).append(count=2).stop()
    one = replica(tmp_path)
    assert (one.topic_partition, one.base_offsets) == (ORDERS, (0, 3))
    assert values(one) == [str(i) for i in range(7)]
    assert one.log_end_offset() == 7
    assert replica(tmp_path / "orders-0").base_offsets == (0, 3)  # named itself


def test_a_directory_that_only_root_may_read_does_not_hide_the_logs_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log directory that is a file system of its own has a lost+found (mode 0700)."""
    LogBuilder(tmp_path).append(count=3).stop()
    (tmp_path / "lost+found").mkdir()
    iterdir = Path.iterdir

    def guarded(path: Path) -> Iterator[Path]:
        if path.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", guarded)
    assert values(replica(tmp_path)) == ["0", "1", "2"]


def test_a_segment_that_a_broker_deletes_while_it_is_read_loses_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LogBuilder(tmp_path).append(count=3).roll().append(count=2).stop()
    one = replica(tmp_path)
    (tmp_path / "orders-0" / f"{0:020}.log").unlink()  # after the plan, by retention
    with pytest.raises(ApiError, match=r"00\.log was deleted after .*failOnDataLoss"):
        values(one)
    with caplog.at_level(logging.WARNING):
        assert values(one, lax=True) == ["3", "4"]
    assert "00.log was deleted" in caplog.text


def test_bounds_choose_segments_and_records(tmp_path: Path) -> None:
    LogBuilder(tmp_path).append(count=3).roll().append(count=3).roll().append(count=3).stop()
    one = replica(tmp_path)
    middle = Bounds(offset=Interval(4, 5))
    assert [segment.base_offset for segment in one.segments(middle)] == [3]
    assert values(one, middle) == ["4", "5"]
    new = Bounds(timestamp_us=Interval(low=(NOW_MS + 7) * 1000))  # offset i has the time NOW + i
    assert values(one, new) == ["7", "8"]


def test_an_offset_deep_in_a_segment_is_found_by_its_index(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="100")
    for _ in range(50):
        builder.append(count=2)
    builder.stop()
    assert values(replica(tmp_path), Bounds(offset=Interval(61, 62))) == ["61", "62"]
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = path.read_bytes()
    path.write_bytes(bytes(100) + data[100:])  # is not read
    assert values(replica(tmp_path), Bounds(offset=Interval(61, 62))) == ["61", "62"]
    path.write_bytes(data)
    path.with_suffix(".index").unlink()
    assert values(replica(tmp_path), Bounds(offset=Interval(61, 62))) == ["61", "62"]


@pytest.mark.parametrize("mask", [0x01, 0x10, 0x80])
def test_a_damaged_index_hides_no_records(tmp_path: Path, mask: int) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="100")
    for _ in range(8):
        builder.append(count=2)
    builder.stop()
    one, index = replica(tmp_path), tmp_path / "orders-0" / f"{0:020d}.index"
    data = index.read_bytes()
    assert len(data) > 40
    for at in range(len(data)):
        index.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
        assert values(one) == [str(i) for i in range(16)]
        assert values(one, Bounds(offset=Interval(9, 12))) == ["9", "10", "11", "12"]


def test_aborted_transactions_across_segments(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(7, 0, 2, is_transactional=True)
    builder.roll()
    builder.produce(7, 2, 1, is_transactional=True)
    builder.end_transaction(7, commit=False)
    builder.produce(7, 3, 1, is_transactional=True)
    builder.end_transaction(7, commit=True)
    builder.stop()
    assert values(replica(tmp_path)) == ["7/0", "7/1", "7/2", "7/3"]
    assert values(replica(tmp_path), skip_aborted=True) == ["7/3"]


def test_an_abort_before_the_bounds_hides_no_later_transaction(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="100")
    builder.produce(7, 0, 2, is_transactional=True)
    builder.end_transaction(7, commit=False)
    for sequence in range(2, 42, 2):
        builder.produce(7, sequence, 2, is_transactional=True)
    builder.end_transaction(7, commit=True)
    builder.stop()
    some = Bounds(offset=Interval(30, 32))  # the index leads past the marker of the abort
    assert values(replica(tmp_path), some, skip_aborted=True) == ["7/29", "7/30", "7/31"]


def test_a_cut_off_tail_of_the_log_is_left_out(tmp_path: Path) -> None:
    LogBuilder(tmp_path).append(count=2).roll().append(count=1).append(count=1).kill()
    last = tmp_path / "orders-0" / f"{2:020d}.log"
    last.write_bytes(last.read_bytes()[:-1])
    assert values(replica(tmp_path)) == ["0", "1", "2"]


@pytest.mark.parametrize("fault", ["a flipped bit", "a cut-off tail", "a length that is too large"])
def test_records_that_a_closed_segment_has_lost_are_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    LogBuilder(tmp_path).append(count=2).append(count=2).roll().append(count=1).kill()
    first = tmp_path / "orders-0" / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    if fault == "a flipped bit":
        data[-1] ^= 0x55
    elif fault == "a cut-off tail":
        del data[-1]
    else:  # no record is left, of the batch behind it neither
        data[9] ^= 0x55
    first.write_bytes(data)
    with pytest.raises(ApiError, match=rf"{first}: .*(corrupt|no whole batch)") as caught:
        values(replica(tmp_path))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    with caplog.at_level(logging.WARNING):
        assert values(replica(tmp_path), lax=True)[-1] == "4"
    assert f"{first}" in caplog.text


@pytest.mark.parametrize("fault", ["a flipped bit", "a length of 0", "an unknown magic", "zeros"])
def test_records_before_a_corrupt_batch_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    builder = LogBuilder(tmp_path)
    for _ in range(4):
        builder.append(count=2)
    builder.kill()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    third = len(data) // 2  # as long as the others
    if fault == "a flipped bit":
        data[third * 3 // 2 - 1] ^= 0x55
    elif fault == "a length of 0":
        data[third + 8 : third + 12] = bytes(4)
    elif fault == "an unknown magic":
        data[third + 16] = 9
    else:
        data[third:] = bytes(5000)
    path.write_bytes(data)
    with pytest.raises(ApiError, match=f"{path}: "):
        values(replica(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert values(replica(tmp_path), lax=True) == ["0", "1", "2", "3"]
        some = Bounds(offset=Interval(1, 2))
        assert values(replica(tmp_path), some, lax=True) == ["1", "2"]
    assert "the rest of the segment is left out, from offset 4 on" in caplog.text


def test_records_before_a_corrupt_batch_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them were decoded before the others of the same group."""
    decode = columns.decode_columns
    monkeypatch.setattr(columns, "decode_columns", partial(decode, group_bytes=100))
    builder = LogBuilder(tmp_path)
    for _ in range(50):
        builder.append(row(value="v" * 30))
    builder.produce(7, 0, 2, is_transactional=True)
    builder.end_transaction(7, commit=False)
    builder.append(count=2).stop()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x55
    path.write_bytes(data)
    found = values(replica(tmp_path), lax=True, skip_aborted=True)
    assert found == ["v" * 30] * 50


def test_an_empty_segment_has_no_records(tmp_path: Path) -> None:
    LogBuilder(tmp_path).stop()
    assert values(replica(tmp_path)) == []
    assert replica(tmp_path).log_end_offset() == 0


def test_of_several_replicas_the_one_that_reaches_furthest(tmp_path: Path) -> None:
    for name, count in (("a", 2), ("b", 5), ("c", 3)):
        LogBuilder(tmp_path / name).append(row(value=name), *[row()] * (count - 1)).stop()
    other = TopicPartition("a-b.c", 12)
    LogBuilder(tmp_path / "c", topic_partition=other).append().stop()
    found = find_replicas([str(tmp_path / name) for name in "abc"])
    assert len(found) == 4
    chosen = longest_replicas(found)
    assert [(one.topic_partition, one.directory.parent.name) for one in chosen] == [
        (other, "c"),
        (ORDERS, "b"),
    ]


def test_a_replica_with_a_corrupt_batch_reaches_as_far_as_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        LogBuilder(tmp_path / name).append(count=2).append(count=2).stop()
    damaged = tmp_path / "a" / "orders-0" / f"{0:020d}.log"
    data = bytearray(damaged.read_bytes())
    second = len(data) // 2
    data[second + 8 : second + 12] = bytes(4)  # no batch is of 0 bytes
    damaged.write_bytes(data)
    found = find_replicas([str(tmp_path / name) for name in "ab"])
    with pytest.raises(ApiError, match=str(damaged)):
        longest_replicas(found)
    with caplog.at_level(logging.WARNING):
        (chosen,) = longest_replicas(found, skip_corrupt=True)
    assert chosen.directory.parent.name == "b"
    assert str(damaged) in caplog.text


def test_a_replica_whose_last_segment_is_deleted_does_not_hide_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        LogBuilder(tmp_path / name).append(count=2).stop()
    found = find_replicas([str(tmp_path / name) for name in "ab"])
    (tmp_path / "a" / "orders-0" / f"{0:020d}.log").unlink()  # by retention, or with its topic
    with pytest.raises(ApiError, match=r"00\.log was deleted after .*failOnDataLoss"):
        longest_replicas(found)
    with caplog.at_level(logging.WARNING):
        (chosen,) = longest_replicas(found, skip_corrupt=True)
    assert chosen.directory.parent.name == "b"
    assert "00.log was deleted" in caplog.text


def test_a_topic_that_is_deleted_while_directories_are_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogBuilder(tmp_path).append(count=2).stop()
    deleted = tmp_path / "deleted-0"
    deleted.mkdir()
    iterdir = Path.iterdir

    def renamed(path: Path) -> Iterator[Path]:
        if path == deleted:
            deleted.rename(tmp_path / "deleted-0.0123-delete")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", renamed)
    assert values(replica(tmp_path)) == ["0", "1"]


def test_what_is_no_replica_of_now_is_left_out(tmp_path: Path) -> None:
    LogBuilder(tmp_path).append().stop()
    for name in ("old-1.6fa0b6b0f1d54a1dbb3dbf3ac0ffee00-delete", "empty-0", "notes"):
        (tmp_path / name).mkdir()
    os.link(tmp_path / "orders-0" / f"{0:020d}.log", tmp_path / "notes" / f"{0:020d}.log")
    assert replica(tmp_path).topic_partition == ORDERS


def test_paths_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere is not a directory"):
        find_replicas([str(tmp_path / "nowhere")])
    with pytest.raises(ConfigError, match="No partition of any topic is in"):
        find_replicas([str(tmp_path)])
