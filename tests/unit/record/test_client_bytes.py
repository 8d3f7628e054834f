"""kafka-python's and aiokafka's encoders and decoders as judges of ours, both ways."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from aiokafka.record import default_records as aio_default
from aiokafka.record import legacy_records as aio_legacy
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.record.batch_header import read_header
from kafkapy.record.batch_rules import BatchRules
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import Record, iter_records
from kafkapy.record.validation import prepare_client_batch
from tests.harness.storage.batches import NOW_MS, ROWS, any_row, rows

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python's own, on import
    from kafka.record import default_records as kp_default
    from kafka.record import legacy_records as kp_legacy

BUILDERS: dict[str, Any] = {
    "kafka-python": kp_default.DefaultRecordBatchBuilder,
    "aiokafka": aio_default.DefaultRecordBatchBuilder,
    "aiokafka pure": aio_default._DefaultRecordBatchBuilderPy,
}
READERS: dict[str, Any] = {
    "kafka-python": kp_default.DefaultRecordBatch,
    "aiokafka": aio_default.DefaultRecordBatch,
    "aiokafka pure": aio_default._DefaultRecordBatchPy,
}
LEGACY_BUILDERS: dict[str, Any] = {
    "kafka-python": kp_legacy.LegacyRecordBatchBuilder,
    "aiokafka": aio_legacy.LegacyRecordBatchBuilder,
    "aiokafka pure": aio_legacy._LegacyRecordBatchBuilderPy,
}
MANY = rows(4000)  # over 64 KB: several lz4 and snappy blocks
row_lists = st.lists(any_row, min_size=1, max_size=6)


def as_rows(records: Any) -> list[RecordData]:
    return [RecordData(r.key, r.value, r.timestamp, list(r.headers)) for r in records]


def listed(given_rows: list[RecordData]) -> list[RecordData]:
    return [row._replace(headers=list(row.headers)) for row in given_rows]


def built(name: str, codec: Codec, given_rows: list[RecordData]) -> bytes:
    builder = BUILDERS[name](
        magic=2, compression_type=int(codec), is_transactional=1, producer_id=12,
        producer_epoch=3, base_sequence=40, batch_size=1 << 24,
    )  # fmt: skip
    for offset, row in enumerate(given_rows):
        builder.append(offset, row.timestamp, row.key, row.value, list(row.headers))
    return bytes(builder.build())


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("client", BUILDERS)
@settings(max_examples=25)
@given(row_lists)
def test_we_read_what_they_write(client: str, codec: Codec, given_rows: list[RecordData]) -> None:
    check_we_read(client, codec, given_rows)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("client", BUILDERS)
def test_we_read_their_large_batches(client: str, codec: Codec) -> None:
    check_we_read(client, codec, MANY)


def check_we_read(client: str, codec: Codec, given_rows: list[RecordData]) -> None:
    batch = memoryview(built(client, codec, given_rows))
    assert prepare_client_batch(batch, BatchRules(), NOW_MS).records is batch
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (12, 3, 40)
    assert header.is_transactional
    records = list(iter_records(batch))
    assert as_rows(records) == listed(given_rows)
    assert [record.sequence for record in records] == list(range(40, 40 + len(given_rows)))


@pytest.mark.parametrize("client", BUILDERS)
@settings(max_examples=25)
@given(row_lists)
def test_our_uncompressed_bytes_are_theirs(client: str, given_rows: list[RecordData]) -> None:
    ours = build_batch(
        given_rows, producer_id=12, producer_epoch=3, base_sequence=40, is_transactional=True,
        leader_epoch=read_header(built(client, Codec.NONE, given_rows)).partition_leader_epoch,
    )  # fmt: skip
    assert ours == built(client, Codec.NONE, given_rows)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("client", READERS)
@settings(max_examples=25)
@given(row_lists)
def test_they_read_what_we_write(client: str, codec: Codec, given_rows: list[RecordData]) -> None:
    check_they_read(client, codec, given_rows)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("client", READERS)
def test_they_read_our_large_batches(client: str, codec: Codec) -> None:
    check_they_read(client, codec, MANY)


def check_they_read(client: str, codec: Codec, given_rows: list[RecordData]) -> None:
    batch = build_batch(given_rows, base_offset=900, codec=codec)
    theirs = READERS[client](batch)
    assert theirs.validate_crc()
    records = list(theirs)
    assert as_rows(records) == listed(given_rows)
    assert [record.offset for record in records] == list(range(900, 900 + len(given_rows)))
    assert theirs.next_offset == 900 + len(given_rows)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("client", READERS)
def test_they_read_what_we_rewrite(client: str, codec: Codec) -> None:
    batch = memoryview(built("kafka-python", Codec.GZIP, ROWS))
    rules = BatchRules(codec=codec, log_append_time=True)
    prepared = prepare_client_batch(batch, rules, NOW_MS + 77)
    theirs = READERS[client](bytes(prepared.records))
    assert theirs.validate_crc()
    assert theirs.timestamp_type == 1
    assert [record.timestamp for record in theirs] == [NOW_MS + 77] * len(ROWS)


@pytest.mark.parametrize(
    ("magic", "codec"),  # neither client writes lz4 in v0: test_java_bytes has it
    [(magic, codec) for magic in (0, 1) for codec in list(Codec)[: 3 + magic]],
)
@pytest.mark.parametrize("client", LEGACY_BUILDERS)
def test_we_read_and_convert_their_old_formats(client: str, magic: int, codec: Codec) -> None:
    data = legacy_set(client, magic, codec)
    expected = [
        RecordData(b"key", b"value %d" % i, NOW_MS + i if magic else -1, []) for i in range(5000)
    ]
    records: list[Record] = list(iter_records(data))
    assert as_rows(records) == expected
    assert [record.offset for record in records] == list(range(5000))
    prepared = prepare_client_batch(memoryview(data), BatchRules(), NOW_MS, 2)
    assert prepared.header.codec is codec
    assert as_rows(iter_records(prepared.records)) == expected


def legacy_set(client: str, magic: int, codec: Codec) -> bytes:
    builder = LEGACY_BUILDERS[client](magic, int(codec), 1 << 20)
    for i in range(5000):
        builder.append(i, NOW_MS + i, b"key", b"value %d" % i)
    return bytes(builder.build())
