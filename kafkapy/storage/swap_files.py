"""Completes or undoes a compaction that a crash interrupted, according to its files.

`.deleted` files are removed. `.cleaned` files are unfinished, and their sources are complete.
`.swap` files are complete, and replace the plain segments in their range.
"""

from __future__ import annotations

from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import TEMPORARY_SUFFIX
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    parse_offset_file_name,
)
from kafkapy.storage.log_segment import LogSegment, SegmentFiles


def finish_swaps(pool: FilePool, directory: str) -> set[int]:
    """Leave only plain files in `directory`. Returns the base offsets of segments that may have
    been compacted just before the crash: a compaction renames its sources to `.deleted`.

    Raises:
        OSError: the work is incomplete; the next start continues it.
    """
    fs = pool.fs
    swaps: dict[tuple[int, str], int] = {}
    plain: list[tuple[int, str]] = []
    cleaned: list[tuple[int, str]] = []
    compacted: set[int] = set()
    for name, _, size, _ in fs.list(directory):
        parsed = parse_offset_file_name(name)
        if name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX)):
            if parsed is not None:
                compacted.add(parsed[0])
            fs.remove(f"{directory}/{name}")
        elif parsed is None:
            continue
        elif parsed[2] == CLEANED_SUFFIX:
            cleaned.append((parsed[0], name))
        elif parsed[2] == SWAP_SUFFIX:
            swaps[parsed[0], parsed[1]] = size
        elif parsed[1] in SEGMENT_SUFFIXES:
            plain.append((parsed[0], name))
    unfinished = min(cleaned)[0] if cleaned else None
    for offset, kind in list(swaps):
        # The renames to `.swap`, last segment first, did not finish: the sources are complete.
        if unfinished is not None and offset >= unfinished:
            fs.remove(f"{directory}/{offset:020d}{kind}{SWAP_SUFFIX}")
            del swaps[offset, kind]
    for _, name in cleaned:
        fs.remove(f"{directory}/{name}")
    _replace(pool, directory, swaps, plain)
    return compacted | {offset for offset, _ in swaps}


def _replace(
    pool: FilePool,
    directory: str,
    swaps: dict[tuple[int, str], int],
    plain: list[tuple[int, str]],
) -> None:
    fs = pool.fs
    for (offset, kind), size in swaps.items():
        if kind != LOG_SUFFIX:
            continue
        files = SegmentFiles(size)
        segment = LogSegment(pool, directory, offset, LogConfig(), 0, 0, files, SWAP_SUFFIX)
        end = segment.next_offset()
        segment.records.close_handle()
        for base, name in plain:
            if offset <= base < max(end, offset + 1):
                fs.remove(f"{directory}/{name}")
    for offset, kind in swaps:
        path = f"{directory}/{offset:020d}{kind}"
        fs.rename(path + SWAP_SUFFIX, path)
    if swaps:
        fs.fsync_dir(directory)
