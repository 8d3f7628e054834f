"""A log with damage in it is read on behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import HEADER, iter_headers, read_header
from kafkapy.record.builder import build_batch
from kafkapy.storage.damage import valid_batches
from tests.harness.storage.batches import patched
from tests.harness.storage.log_builder import LogBuilder, row

BATCH_BYTES = len(build_batch([row()]))
FIELDS = [{"batch_length": 0}, {"batch_length": 2**31 - 1}, {"base_offset": 2**40}, {"magic": 9}]


def written(root: Path, batches: int, **configs: str) -> LogBuilder:
    builder = LogBuilder(root, **configs)
    for _ in range(batches):
        builder.add(build_batch([row()]))
    return builder


def damage(builder: LogBuilder, segment: int, position: int, **fields: int) -> None:
    """Overwrite fields of the header at a position of a segment's file."""
    path = builder.path(f"{segment:020d}.log")
    data = bytearray(path.read_bytes())
    header = read_header(data, position)._replace(**fields)
    HEADER.pack_into(data, position, *header)
    path.write_bytes(data)


@pytest.mark.parametrize("fields", FIELDS)
def test_sound_batches_end_where_the_damage_is(fields: dict[str, int]) -> None:
    batches = [build_batch([row()], base_offset=offset) for offset in range(4)]
    batches[2] = patched(batches[2], **fields)
    found = valid_batches(b"".join(batches), 0, 4)
    assert (len(found.records), found.next_offset) == (2 * BATCH_BYTES, 2)
    if fields != {"batch_length": 2**31 - 1}:  # may as well be one that is cut off
        assert found.damage


def test_gaps_are_no_damage() -> None:
    batches = build_batch([row()], base_offset=3) + build_batch([row()], base_offset=9)
    assert valid_batches(batches, 1, 10)[1:] == (10, "")
    assert valid_batches(b"", 1, 10) == (memoryview(b""), 1, "")


@pytest.mark.parametrize("fields", FIELDS)
def test_the_index_says_where_to_go_on(tmp_path: Path, fields: dict[str, int]) -> None:
    builder = written(tmp_path, 9, index_interval_bytes="1")
    damage(builder, 0, 4 * BATCH_BYTES, **fields)
    found = builder.log.batches_after_damage(4, 9)
    assert [header.base_offset for _, header in iter_headers(found.records)] == [5]
    assert (found.next_offset, found.damage) == (6, "")
    read = builder.log.read(6, 10_000, 9, True).records
    assert [header.base_offset for _, header in iter_headers(read)] == [6, 7, 8]


def test_or_else_the_next_segment(tmp_path: Path) -> None:
    builder = written(tmp_path, 4).roll()
    builder.add(build_batch([row()]))
    damage(builder, 0, BATCH_BYTES, batch_length=0)
    with pytest.raises(ApiError):
        builder.log.read(1, 1000, 5, True)
    found = builder.log.batches_after_damage(1, 5)
    assert (bytes(found.records), found.next_offset) == (b"", 4)


def test_or_else_the_end(tmp_path: Path) -> None:
    builder = written(tmp_path, 4)
    damage(builder, 0, BATCH_BYTES, batch_length=0)
    assert builder.log.batches_after_damage(1, 4).next_offset == 4


def test_damage_at_what_the_index_names_is_passed_over_too(tmp_path: Path) -> None:
    builder = written(tmp_path, 9, index_interval_bytes="1")
    for batch in (3, 4, 5):
        damage(builder, 0, batch * BATCH_BYTES, magic=9)
    assert builder.log.batches_after_damage(3, 9).next_offset == 7
