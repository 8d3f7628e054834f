"""One compaction: plan, map, groups, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.codec import Codec
from kafkapy.record.records import Record, iter_records
from kafkapy.storage.cleaning import Cleaning, plan_cleaning
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import read_file
from kafkapy.storage.offset_map import ENTRY_BYTES
from tests.harness.cores.ports import NOW_MS
from tests.harness.plugins.closing import Disk
from tests.harness.storage.legacy_messages import message, message_set, wrapper
from tests.harness.storage.log_builder import LogBuilder, row

FS = Disk()


def dirty(tmp_path: Path, segments: int = 4, **configs: str) -> LogBuilder:
    """Each segment has the keys a, b and one of its own; an empty active one follows."""
    builder = LogBuilder(tmp_path, cleanup_policy="compact", **configs)
    for i in range(segments):
        builder.append(row("a", f"a{i}"), row("b", f"b{i}")).append(row(f"own{i}", "x")).roll()
    builder.log.flush()
    return builder


def clean(builder: LogBuilder, start: int = 0, buffer_bytes: int = 10_000) -> Cleaning:
    log = builder.log
    plan = plan_cleaning(log, start, log.log_end_offset, NOW_MS)
    cleaning = Cleaning(log, plan, FS, buffer_bytes)
    cleaning.run()
    return cleaning


def cleaned_records(cleaning: Cleaning) -> list[Record]:
    """The records in the cleaned files, without markers."""
    found: list[Record] = []
    for cleaned in cleaning.cleaned:
        path = f"{cleaning.plan.directory}/{cleaned.base_offset:020d}.log.cleaned"
        found += iter_records(read_file(FS, path))
    return found


def content(cleaning: Cleaning) -> list[int]:
    """Offsets of the batches in the cleaned files."""
    found = []
    for cleaned in cleaning.cleaned:
        path = f"{cleaning.plan.directory}/{cleaned.base_offset:020d}.log.cleaned"
        found += [header.base_offset for _, header in iter_headers(read_file(FS, path))]
    return found


def test_others_get_their_turn_between_batches(tmp_path: Path) -> None:
    log = dirty(tmp_path, segments=20).log
    pauses: list[int] = []
    plan = plan_cleaning(log, 0, log.log_end_offset, NOW_MS)
    Cleaning(log, plan, FS, 10_000).run(lambda: pauses.append(1))
    assert len(pauses) >= 20


def test_sources_are_the_closed_segments_below_the_bound(tmp_path: Path) -> None:
    log = dirty(tmp_path).log
    assert [s.base_offset for s in plan_cleaning(log, 0, 12, NOW_MS).sources] == [0, 3, 6, 9]
    assert [s.base_offset for s in plan_cleaning(log, 0, 8, NOW_MS).sources] == [0, 3]
    assert plan_cleaning(log, 0, 2, NOW_MS).sources == []


def test_the_log_is_untouched_until_the_commit(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    before = builder.records()
    cleaning = clean(builder)
    assert builder.records() == before
    assert content(cleaning) == [2, 5, 8, 9, 11]
    assert cleaning.end_offset == 12
    assert cleaning.stats.records_indexed == 12
    assert cleaning.stats.bytes_read > cleaning.stats.bytes_written > 0
    cleaning.discard()
    assert not [name for name in builder.files() if name.endswith(".cleaned")]


def test_neighbours_are_merged_up_to_the_segment_size(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    assert [[s.base_offset for s in c.sources] for c in clean(builder).cleaned] == [[0, 3, 6, 9]]
    size = builder.log.segments.first.size
    builder.manager.update_topic_config(
        "orders", {"cleanup.policy": "compact", "segment.bytes": str(2 * size)}
    )
    groups = [[s.base_offset for s in c.sources] for c in clean(builder).cleaned]
    assert groups == [[0, 3], [6, 9]]


def test_index_sizes_bound_a_group(tmp_path: Path) -> None:
    builder = dirty(tmp_path, index_interval_bytes="0", segment_index_bytes="24")
    builder.manager.update_topic_config(
        "orders", {"cleanup.policy": "compact", "segment.index.bytes": "16"}
    )
    groups = [[s.base_offset for s in c.sources] for c in clean(builder).cleaned]
    assert groups == [[0], [3], [6], [9]]


def test_a_small_map_cleans_part_of_the_log(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    cleaning = clean(builder, buffer_bytes=5 * ENTRY_BYTES)
    # a, b, own0, own1; the next batch might have two more.
    assert cleaning.end_offset == 6
    assert content(cleaning) == [2, 3, 5]


def test_what_follows_an_aborted_transaction_of_an_earlier_round_is_cleaned(
    tmp_path: Path,
) -> None:
    """Its marker is not met again; its producer must not seem to be aborted for good."""
    builder = LogBuilder(tmp_path, cleanup_policy="compact")
    builder.produce(7, 0, is_transactional=True)
    builder.end_transaction(7, commit=False)
    builder.roll()
    for sequence in (1, 2, 3):
        builder.produce(7, sequence, is_transactional=True)
        builder.end_transaction(7, commit=True)
    builder.append(row("other", "x")).roll()
    first_dirty = builder.log.segments[1].base_offset
    cleaning = clean(builder, start=first_dirty)
    assert cleaning.stats.records_indexed == 4
    values = [record.value for record in cleaned_records(cleaning)]
    assert values == [b"7/3", b"x"]


def test_clean_segments_lose_what_newer_ones_have(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    cleaning = clean(builder, start=9)
    assert cleaning.stats.records_indexed == 3
    assert content(cleaning) == [2, 5, 8, 9, 11]


def test_the_steps_come_one_by_one(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    log = builder.log
    cleaning = Cleaning(log, plan_cleaning(log, 0, 12, NOW_MS), FS, 10_000)
    assert sum(1 for _ in cleaning.steps()) == 16


def test_the_modified_time_is_kept(tmp_path: Path) -> None:
    builder = dirty(tmp_path)
    FS.set_modified(builder.log.segments[3].records.path, 12_345_000)
    cleaning = clean(builder)
    found = FS.stat(f"{builder.directory}/00000000000000000000.log.cleaned")
    assert found is not None
    assert found.modified_ms == 12_345_000
    assert cleaning.cleaned[0].files.log == found.size


def test_a_gap_at_the_end_of_a_segment_is_indexed_too(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, cleanup_policy="compact")
    builder.append(row("a", "1")).append(row("b", "2")).append(row("c", "3"))
    builder.log.truncate_to(2)
    builder.append(row("a", "4")).roll()
    assert clean(builder).end_offset == 3


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_old_segments_become_new_batches_where_they_shrink(tmp_path: Path, codec: Codec) -> None:
    builder = LogBuilder(tmp_path, cleanup_policy="compact")
    if codec is Codec.NONE:
        data = message_set(1, [0, 1, 2])
    else:
        data = wrapper(1, codec, message_set(1, [0, 1, 2]), offset=2)
    builder.log.append_as_follower(data, NOW_MS)
    builder.log.update_high_watermark(3)
    builder.roll()
    cleaning = clean(builder)
    path = f"{builder.directory}/00000000000000000000.log.cleaned"
    [(_, header)] = list(iter_headers(read_file(FS, path)))
    assert header.last_offset == 2
    assert cleaning.end_offset == 3


def test_the_only_values_in_an_old_compressed_set_stay_when_its_last_key_gets_a_new_value(
    tmp_path: Path,
) -> None:
    """The header of such a set has only its last offset."""
    builder = LogBuilder(tmp_path, cleanup_policy="compact")
    inner = b"".join(message(1, i, key, b"old") for i, key in enumerate([b"a", b"b", b"c"]))
    builder.log.append_as_follower(wrapper(1, Codec.GZIP, inner, offset=2), NOW_MS)
    builder.append(row("c", "new")).roll()
    values = {record.key: record.value for record in cleaned_records(clean(builder))}
    assert values == {b"a": b"old", b"b": b"old", b"c": b"new"}


@pytest.mark.parametrize("segment", [0, 3])
def test_a_flipped_bit_gets_no_new_crc(tmp_path: Path, segment: int) -> None:
    """A batch that is thinned out is encoded again: damage in what stays would look sound."""
    builder = dirty(tmp_path)
    path = builder.log.segments.get(segment).records.path  # type: ignore[union-attr]
    with Path(path).open("r+b") as file:
        file.seek(-1, 2)
        [last] = file.read()
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    with pytest.raises(ApiError, match="crc"):
        clean(builder)


@pytest.mark.parametrize("segment", [0, 3])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("start", [0, 9])
def test_no_batch_is_lost_behind_a_wrong_length(
    tmp_path: Path, segment: int, batch: int, start: int
) -> None:
    """A length is not in the CRC: a batch that seems to be longer than the rest of its segment is
    no end of it."""
    builder = dirty(tmp_path)
    path = builder.log.segments.get(3 * segment).records.path  # type: ignore[union-attr]
    position = [at for at, _ in iter_headers(read_file(FS, path))][batch]
    with Path(path).open("r+b") as file:
        file.seek(position + 9)
        file.write(b"\x40")
    with pytest.raises(ApiError, match=f"no whole batch at position {position}"):
        clean(builder, start)


def test_cleaning_uses_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = dirty(tmp_path)
    cleaning = Cleaning(builder.log, plan_cleaning(builder.log, 0, 12, NOW_MS), FS, 10_000)

    def refuse(*_: object) -> None:
        raise AssertionError("the loop's pool was used by the worker")

    monkeypatch.setattr(builder.log.local.pool, "open", refuse)
    monkeypatch.setattr(builder.log.local.pool, "remove", refuse)
    assert isinstance(builder.log.local.pool, FilePool)
    cleaning.run()
    monkeypatch.undo()
