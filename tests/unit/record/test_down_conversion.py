"""Down-converted message sets are those of Apache Kafka 3.9.1.

`java_down_conversions.txt` was recorded from a broker in ZooKeeper mode: a line is "name magic
first-offset hex-of-a-v4-fetch hex-of-a-v1-or-v3-fetch". Kafka fills what is left of the size that
it read with a message that never comes; only whole messages are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers, read_header
from kafkapy.record.builder import RecordData, build_batch, rebuild_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.down_conversion import OVERFLOW, down_convert
from kafkapy.record.records import Record, iter_records
from tests.harness.storage.batches import NOW_MS

_LINES = Path(__file__).with_name("java_down_conversions.txt").read_text().splitlines()
RECORDED = [
    (name, int(magic), int(offset), bytes.fromhex(stored), bytes.fromhex(sent))
    for name, magic, offset, stored, sent in map(str.split, _LINES)
]
ROWS = [RecordData(b"k", b"v%d" % i, NOW_MS + i, [("h", b"x")]) for i in range(3)]
MANY = 1 << 20


def shape(message_set: bytes) -> list[tuple[int, int, int, int]]:
    """(offset, magic, attributes, timestamp) of each outer message; its CRC must be right."""
    for position, header in iter_headers(message_set):
        validate_crc(message_set, position, header)
    return [
        (h.base_offset, h.magic, h.attributes, h.max_timestamp)
        for _, h in iter_headers(message_set)
    ]


def rows(message_set: bytes) -> list[Record]:
    return list(iter_records(message_set))


@pytest.mark.parametrize(("name", "magic", "offset", "stored", "sent"), RECORDED)
def test_as_apache_kafka_does(
    name: str, magic: int, offset: int, stored: bytes, sent: bytes
) -> None:
    converted = down_convert(stored, magic, offset, len(stored))
    assert shape(converted) == shape(sent)
    assert rows(converted) == rows(sent)
    if not any(header.codec for _, header in iter_headers(stored)):
        assert sent.startswith(converted)


def test_lz4_in_v0_has_the_checksum_that_clients_of_that_time_expect() -> None:
    [sent] = [sent for name, magic, _, _, sent in RECORDED if (name, magic) == ("lz4", 0)]
    converted = down_convert(build_batch(ROWS, codec=Codec.LZ4), 0, 0, MANY)
    frame, java_frame = converted[converted.index(b"\x04\x22\x4d\x18") :], sent
    java_frame = java_frame[java_frame.index(b"\x04\x22\x4d\x18") :]
    assert frame[:7] == java_frame[:7]


def test_a_set_is_cut_where_the_room_ends_but_not_in_its_first_batch() -> None:
    first, second = build_batch(ROWS), build_batch(ROWS, base_offset=3)
    both = down_convert(first + second, 1, 0, MANY)
    assert [r.offset for r in rows(both)] == [0, 1, 2, 3, 4, 5]
    assert down_convert(first + second, 1, 0, 1) == down_convert(first, 1, 0, MANY)
    assert down_convert(first + second, 1, 0, len(both) - 1) == both[:-1]


def test_a_batch_with_nothing_to_show_leaves_the_room_to_the_next() -> None:
    """The rows before it have used up the response. Compaction has left the batch without records,
    or without any from the fetch offset on."""
    sent = build_batch(ROWS)
    header, second = read_header(sent), build_batch(ROWS, base_offset=3)
    for kept, first_offset in ([], 0), (rows(sent)[:1], 1):
        compacted = rebuild_batch(header, kept)
        converted = down_convert(compacted + second, 1, first_offset, 0)
        assert converted == down_convert(second, 1, 0, MANY)


def test_others_get_their_turn_between_batches() -> None:
    pauses: list[int] = []
    down_convert(build_batch(ROWS, codec=Codec.LZ4) * 20, 1, 0, MANY, lambda: pauses.append(1))
    assert len(pauses) == 20


def test_batches_of_an_old_format_stay_as_they_are() -> None:
    old = down_convert(build_batch(ROWS), 0, 0, MANY)
    assert down_convert(old, 1, 0, MANY) == old
    newer = down_convert(build_batch(ROWS, codec=Codec.GZIP), 1, 0, MANY)
    assert rows(down_convert(newer, 0, 0, MANY)) == rows(old)


def test_a_bad_batch_ends_the_set_before_it_and_is_refused_when_it_is_the_first() -> None:
    bad = {
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: build_batch(ROWS, codec=Codec.ZSTD),
        ErrorCode.CORRUPT_MESSAGE: build_batch(ROWS, codec=Codec.GZIP)[:61] + bytes(99),
    }
    for code, batch in bad.items():
        damaged = bytearray(batch)
        damaged[8:12] = (len(batch) - 12).to_bytes(4, "big")
        with pytest.raises(ApiError) as refusal:
            down_convert(damaged, 1, 0, MANY)
        assert refusal.value.code is code
        good = build_batch(ROWS)
        assert down_convert(good + damaged, 1, 0, MANY) == down_convert(good, 1, 0, MANY)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_flipped_bit_gets_no_new_crc(codec: Codec) -> None:
    batch = bytearray(build_batch(ROWS, codec=codec))
    flipped = batch.index(b"v1") + 1 if codec is Codec.NONE else 27  # in the first timestamp
    batch[flipped] ^= 1
    with pytest.raises(ApiError) as caught:
        down_convert(batch, 1, 0, MANY)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_markers_behind_each_other_are_shown_once_and_alone_as_no_message() -> None:
    marker = end_transaction_marker(
        commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=1, timestamp=NOW_MS
    )
    assert down_convert(marker + marker, 1, 0, MANY) == OVERFLOW
    assert down_convert(b"", 1, 0, MANY) == b""
    assert down_convert(marker[:-1], 1, 0, MANY) == b""
    after = down_convert(marker + build_batch(ROWS, base_offset=1), 1, 0, MANY)
    assert [r.offset for r in rows(after)] == [1, 2, 3]
