"""Batches that the record check accepts are read whole by every reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import HEADER_SIZE, BatchHeader, read_header
from kafkapy.record.batch_rules import BatchRules, PreparedBatch
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.columns import ColumnSelection, decode_columns
from kafkapy.record.compression import compress
from kafkapy.record.record_check import check_records
from kafkapy.record.records import batch_records, records_payload
from kafkapy.record.row_index import index_keys, index_rows
from kafkapy.record.validation import prepare_client_batch
from kafkapy.tools.dump.record_lines import record_lines
from tests.harness.storage.batches import NOW_MS, any_row, patched, raw_batch, rows

COMPACTED = BatchRules(compacted=True)
KEYED = st.builds(lambda row, key: row._replace(key=key), any_row, st.binary(max_size=300))
ALL = ColumnSelection(headers=True)
REFUSED = {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_TIMESTAMP}

T = TypeVar("T")


def outcome(check: Callable[[], T]) -> T | ErrorCode:
    """The result of a check, or the error code of its refusal."""
    try:
        return check()
    except ApiError as error:
        return error.code


def checked(batch: bytes) -> list[int]:
    header = read_header(batch)
    return check_records(records_payload(batch, header), header)


def assert_every_reader_reads(batch: bytes, header: BatchHeader) -> None:
    """Exactly as many records as the header says, at consecutive offsets, from all of them."""
    count, offsets = header.record_count, list(range(header.record_count))
    assert header.last_offset_delta == count - 1
    read = list(batch_records(batch, header))
    assert [record.offset for record in read] == offsets
    index = index_rows(batch, header)
    assert (index.offsets, index.keys) == (offsets, [record.key for record in read])
    assert index.tombstones == [i for i, record in enumerate(read) if record.value is None]
    key_offsets, keys = index_keys(batch, header)
    assert (list(key_offsets), keys) == (offsets, index.keys)
    columns = list(decode_columns(batch, 0, count, selection=ALL))
    assert [offset for found in columns for offset in found.offsets] == offsets
    lines = record_lines(records_payload(batch, header), header, metadata=True, contents=True)
    assert lines is not None
    assert (lines.first_offset, lines.last_offset) == (0, count - 1)


@given(st.lists(any_row, min_size=1, max_size=5))
def test_true_records_pass_and_those_without_a_key_are_named(given_rows: list[RecordData]) -> None:
    keyless = [i for i, row in enumerate(given_rows) if row.key is None]
    assert checked(build_batch(given_rows)) == keyless


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193, 20_000])
def test_offset_deltas_of_each_length_pass(count: int) -> None:
    batch = build_batch(rows(count))
    assert checked(batch) == []
    assert_every_reader_reads(batch, read_header(batch))


@pytest.mark.parametrize("base", [-(2**63), -(2**62), -1, 0, 2**62, 2**63 - 1])
@pytest.mark.parametrize("delta", [-(2**63), -(2**13), -64, -1, 0, 1, 63, 2**13, 2**63 - 1])
def test_timestamps_of_64_bits_pass_and_no_others(base: int, delta: int) -> None:
    record = RecordData(b"k", b"v", base + delta)
    payload = build_batch([RecordData(b"first", b"v", base)])[HEADER_SIZE:]
    two = build_batch([RecordData(b"first", b"v", 0), record._replace(timestamp=delta)])
    batch = patched(two, base_timestamp=base)
    assert two[HEADER_SIZE:].startswith(payload)
    if -(2**63) <= base + delta < 2**63:
        assert checked(batch) == []
        assert len(list(batch_records(batch, read_header(batch)))) == 2
    else:
        with pytest.raises(ApiError, match="timestamp delta"):
            checked(batch)


@given(
    st.lists(KEYED, min_size=1, max_size=6),
    st.sampled_from(Codec),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=4),
    st.integers(0, 4000),
    st.integers(-2, 9),
)
def test_a_mutated_batch_is_refused_or_read_whole_by_all(
    given_rows: list[RecordData],
    codec: Codec,
    changes: list[tuple[int, int]],
    cut: int,
    count: int,
) -> None:
    """Bytes changed under a true CRC, some cut off, and perhaps another count."""
    payload = bytearray(build_batch(given_rows)[HEADER_SIZE:])
    for place, byte in changes:
        payload[place % len(payload)] = byte
    del payload[len(payload) - max(cut - 3990, 0) :]
    claimed = count if count > 0 else len(given_rows)
    batch = raw_batch(compress(codec, payload), claimed, codec)
    assert_refused_or_read(batch)


@given(
    st.lists(KEYED, min_size=1, max_size=4),
    st.dictionaries(
        st.sampled_from(
            ["record_count", "last_offset_delta", "base_offset", "base_timestamp", "max_timestamp",
             "producer_id", "producer_epoch", "base_sequence", "attributes"]
        ),
        st.integers(-(2**15), 2**15 - 1),
    ),
)  # fmt: skip
def test_a_lying_header_is_refused_or_does_no_harm(
    given_rows: list[RecordData], fields: dict[str, int]
) -> None:
    assert_refused_or_read(patched(build_batch(given_rows), **fields))


@given(st.binary(max_size=60), st.integers(1, 9))
def test_noise_is_refused_or_read_whole_by_all(payload: bytes, count: int) -> None:
    assert_refused_or_read(raw_batch(payload, count))


def assert_refused_or_read(batch: bytes) -> None:
    found = outcome(lambda: prepare_client_batch(memoryview(batch), COMPACTED, NOW_MS))
    if isinstance(found, PreparedBatch):
        assert_every_reader_reads(bytes(found.records), found.header)
    else:
        assert found in REFUSED


@given(st.binary(max_size=60), st.integers(1, 9), st.integers(-(2**63), 2**63 - 1))
def test_the_check_accepts_nothing_that_the_record_reader_refuses(
    payload: bytes, count: int, base_timestamp: int
) -> None:
    batch = raw_batch(payload, count, base_timestamp=base_timestamp)
    header = read_header(batch)
    found = outcome(lambda: check_records(payload, header))
    if isinstance(found, list):
        assert len(list(batch_records(batch, header))) == count
    else:
        assert found is ErrorCode.INVALID_RECORD
