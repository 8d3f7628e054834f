"""The snapshot file, byte for byte, and the files of a directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.producer_snapshot import SnapshotFiles, decode_snapshot, encode_snapshot
from kafkapy.storage.producer_state import ProducerBatch, ProducerEntry


def entry(producer_id: int = 9, batches: int = 2) -> ProducerEntry:
    made = ProducerEntry(producer_id, 3, 5, 1_700_000_000_000, 40)
    for i in range(batches):
        made.add_batch(ProducerBatch(10 + i, 50 + i, 2, 1_700_000_000_000 + i))
    return made


def test_the_bytes() -> None:
    body = bytes.fromhex(
        "00000001"
        "0000000000000009 0003 0000000b 0000000000000033 00000002"
        "0000018bcfe56801 00000005 0000000000000028"
    )
    expected = b"\0\1" + crc32c(body).to_bytes(4, "big") + body
    assert encode_snapshot([entry()]) == expected
    empty = encode_snapshot([])
    assert empty == b"\0\1" + crc32c(bytes(4)).to_bytes(4, "big") + bytes(4)


def test_only_the_last_batch_comes_back() -> None:
    [found] = decode_snapshot(encode_snapshot([entry()]))
    assert (found.producer_id, found.producer_epoch, found.coordinator_epoch) == (9, 3, 5)
    assert (found.last_timestamp, found.transaction_first_offset) == (1_700_000_000_001, 40)
    assert found.batches == [ProducerBatch(11, 51, 2, 1_700_000_000_001)]
    [bare] = decode_snapshot(encode_snapshot([entry(batches=0)]))
    assert bare.batches == []
    assert bare.last_timestamp == 1_700_000_000_000


def test_damage() -> None:
    whole = encode_snapshot([entry()])
    flipped = bytearray(whole)
    flipped[20] ^= 1
    longer = whole[:6] + (2).to_bytes(4, "big") + whole[10:]
    lying = longer[:2] + crc32c(longer[6:]).to_bytes(4, "big") + longer[6:]
    for bad in (b"", whole[:-1], bytes(flipped), b"\0\2" + whole[2:], lying, bytes(100)):
        with pytest.raises(ApiError) as caught:
            decode_snapshot(bad)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_the_newest_readable_file_is_loaded(tmp_path: Path) -> None:
    files = SnapshotFiles(OsFileSystem(), str(tmp_path), [])
    for offset in (30, 10, 20):
        files.write(offset, [entry(offset)])
    assert files.offsets == [10, 20, 30]
    Path(files.path(30)).write_bytes(b"torn")
    found = files.load_latest(0, 100)
    assert found is not None
    assert (found[0], found[1][0].producer_id) == (20, 20)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "00000000000000000010.snapshot",
        "00000000000000000020.snapshot",
    ]
    assert files.load_latest(11, 19) is None
    files.remove_unless(lambda offset: offset == 10)
    assert files.offsets == [10]
    files.remove(10)
    files.remove(10)
    assert list(tmp_path.iterdir()) == []
