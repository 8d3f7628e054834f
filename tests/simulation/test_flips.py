"""Bits are flipped only where a CRC or the format covers them."""

from __future__ import annotations

from random import Random
from struct import pack

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from tests.simulation.flips import batches_in, lower_offsets, place_in_header, with_flipped_bit

BATCHES = [build_batch([RecordData(None, b"%d" % i * 20, 5)], base_offset=i) for i in range(3)]


def sound_batches(records: bytes) -> list[bytes]:
    """The batches that a consumer accepts."""
    found = []
    for position, header in iter_headers(records):
        validate_crc(records, position, header)
        found.append(records[position : position + header.size])
    return found


def test_batches_are_found_between_other_bytes() -> None:
    data = b"\2" * 30 + BATCHES[0] + b"\0\2\0" + BATCHES[1] + BATCHES[2] + b"\2\2"
    assert [data[start:end] for start, end in batches_in(data)] == BATCHES
    assert batches_in(b"\2" * 100) == []
    assert with_flipped_bit(Random(1), b"\2" * 100) is None


def test_a_header_has_places_too() -> None:
    whole, first = b"".join(BATCHES), len(BATCHES[0])
    places = {place_in_header(Random(seed), whole, range(1, 2)) for seed in range(2000)}
    assert places == {first + at for at in (*range(21, 27), *range(43, 57))}
    assert place_in_header(Random(1), whole, range(3, 9)) is None


def test_an_entry_of_an_index_moves_before_its_place() -> None:
    index = pack(">iiii", 5, 70, 256, 90)
    assert lower_offsets(index) == [(3, 0), (3, 2), (10, 0)]
    assert lower_offsets(b"") == []


def test_no_consumer_takes_a_batch_with_a_flipped_bit() -> None:
    whole = b"".join(BATCHES)
    for seed in range(300):
        flipped = with_flipped_bit(Random(seed), whole)
        assert flipped is not None
        try:
            taken = sound_batches(flipped)
        except ApiError:
            continue
        # The batch's length exceeds the received bytes: it is cut off.
        assert len(taken) < 3
        assert taken == BATCHES[: len(taken)], seed
