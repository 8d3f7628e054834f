"""The log of many GiB that `scripts/bench --growth` lays before a broker."""

from __future__ import annotations

from pathlib import Path

from dev.bench.growth_log import BATCH_BYTES, SparseLog
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.log_builder import LogBuilder

MIB = 1 << 20


def test_it_is_a_log_in_every_byte_and_takes_little_of_a_disk(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    directory = Path(builder.log.directory)
    builder.manager.shutdown()
    log = SparseLog(directory, NOW_MS, segment_bytes=4 * BATCH_BYTES)
    log.grow(1)
    log.grow(3)
    used = sum(path.stat().st_blocks * 512 for path in directory.glob("*.log"))
    assert used < MIB
    builder.open()
    assert builder.log.log_end_offset == log.end == 13
    assert len(builder.log.segments) == 4
    builder.log.update_high_watermark(log.end)
    for offset in (0, 5, 12):
        found = builder.log.offset_for_timestamp(log.timestamp(offset), log.end)
        assert found is not None
        assert found.offset == offset
        assert len(builder.log.read(offset, 1, log.end, True).records) > 0.99 * BATCH_BYTES
    builder.manager.shutdown()
    assert list(verify_log_dir(builder.fs, str(tmp_path))) == []
