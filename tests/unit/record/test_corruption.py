"""No bytes, however cut or flipped, give anything but a clean refusal or a short read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.batch_rules import BatchRules
from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.compression import decompress
from kafkapy.record.records import Record, iter_records
from kafkapy.record.validation import prepare_client_batch
from tests.harness.storage.batches import NOW_MS, ROWS, patched, raw_batch
from tests.harness.storage.legacy_messages import message_set, wrapper

SMALL = ROWS[:4]
REFUSED = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}
RULES = BatchRules()
DEEP = BatchRules(compacted=True, codec=Codec.LZ4, log_append_time=True)


def read_checked(data: bytes) -> list[Record]:
    """Walk, check and decode the records, as recovery and the tools do."""
    for position, header in iter_headers(data):
        validate_crc(data, position, header)
    return list(iter_records(data))


@contextmanager
def refusals(caught: list[ApiError]) -> Iterator[None]:
    """Catch the errors that a sender of bad bytes may get, and let any other through."""
    try:
        yield
    except ApiError as error:
        if error.code not in REFUSED:
            raise
        caught.append(error)


def refused(data: bytes, rules: BatchRules = RULES, version: int = 9) -> bool:
    caught: list[ApiError] = []
    with refusals(caught):
        prepare_client_batch(memoryview(data), rules, NOW_MS, version)
    return bool(caught)


@pytest.mark.parametrize("codec", list(Codec))
def test_every_truncation(codec: Codec) -> None:
    batch = build_batch(SMALL, codec=codec)
    for size in range(len(batch)):
        assert refused(batch[:size])
        assert read_checked(batch[:size]) == []


@pytest.mark.parametrize("codec", list(Codec))
def test_every_flipped_byte_is_noticed(codec: Codec) -> None:
    batch = bytearray(build_batch(SMALL, codec=codec))
    whole = read_checked(bytes(batch))
    for index in range(len(batch)):
        for flip in (0x01, 0x80, 0xFF):
            batch[index] ^= flip
            data = bytes(batch)
            batch[index] ^= flip
            if index >= 8 and not 12 <= index < 16:  # base offset and leader epoch: no CRC
                assert refused(data), (index, flip)
                assert_noticed(data, whole)


def assert_noticed(data: bytes, whole: list[Record]) -> None:
    with refusals([]):
        assert read_checked(data) != whole


@pytest.mark.parametrize("codec", list(Codec))
def test_a_flipped_byte_under_a_true_crc(codec: Codec) -> None:
    batch = build_batch(SMALL, codec=codec)
    for index in range(61, len(batch)):
        for flip in (0x01, 0x80, 0xFF):
            data = bytearray(batch)
            data[index] ^= flip
            sealed = patched(bytes(data))
            refused(sealed, DEEP)
            read_or_refused(sealed)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_every_flip_and_cut_of_a_message_set(magic: int, codec: Codec) -> None:
    inner = message_set(magic, [0, 1])
    data = inner if codec is Codec.NONE else wrapper(magic, codec, inner)
    for index in range(len(data)):
        read_or_refused(data[:index])
        assert refused(data[:index], version=2) or codec is Codec.NONE
        for flip in (0x01, 0x80, 0xFF):
            flipped = bytearray(data)
            flipped[index] ^= flip
            read_or_refused(bytes(flipped))
            refused(bytes(flipped), version=2)


def read_or_refused(data: bytes) -> None:
    with refusals([]):
        list(iter_records(data, include_control=True))


@given(st.binary(max_size=400), st.integers(-2, 9))
def test_noise(data: bytes, version: int) -> None:
    read_or_refused(data)
    assert refused(data, version=version)


@given(st.binary(max_size=200), st.integers(-5, 2**31 - 1), st.integers(0, 0x7F))
def test_noise_in_a_sound_batch(payload: bytes, count: int, attributes: int) -> None:
    batch = raw_batch(payload, 1, attributes, record_count=count)
    read_or_refused(batch)


@given(st.sampled_from(Codec), st.binary(max_size=300))
def test_noise_to_decompress(codec: Codec, data: bytes) -> None:
    with refusals([]):
        decompress(codec, data)
