"""ready_batch: a batch's producer and CRC, set and set again; a batch cut in two."""

from __future__ import annotations

from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.ready_batch import set_producer_state, split_in_two
from kafkapy.record.records import iter_records

ROWS = [RecordData(b"%d" % i, None, 5 + i, [("h", b"x")]) for i in range(5)]


def test_a_stamp_sets_producer_and_crc_and_may_be_set_again() -> None:
    batch = bytearray(build_batch(ROWS, codec=Codec.LZ4))
    for stamped in ((7, 1, 42, True), (8, 0, 0, True)):
        set_producer_state(batch, *stamped)
        header = read_header(batch)
        validate_crc(batch, 0, header)
        found = header.producer_id, header.producer_epoch, header.base_sequence
        assert (*found, header.is_transactional) == stamped
        assert header.codec is Codec.LZ4


def test_halves_have_the_rows_in_their_order() -> None:
    whole = build_batch(ROWS, codec=Codec.ZSTD)
    parts = [bytes(part) for part in split_in_two(bytearray(whole))]
    assert [read_header(part).record_count for part in parts] == [2, 3]
    assert {read_header(part).codec for part in parts} == {Codec.ZSTD}
    seen = [
        RecordData(row.key, row.value, row.timestamp, row.headers)
        for part in parts
        for row in iter_records(part)
    ]
    assert seen == ROWS
