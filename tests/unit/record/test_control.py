"""Transaction markers: their bytes, and what is read from them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import read_header
from kafkapy.record.control import (
    ControlRecordType,
    EndTransactionMarker,
    control_type_id,
    end_transaction_marker,
    read_end_transaction_marker,
)
from kafkapy.record.records import iter_records
from tests.harness.storage.batches import NOW_MS


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_comes_back_as_it_went(commit: bool) -> None:
    batch = end_transaction_marker(
        commit=commit, producer_id=7, producer_epoch=3, coordinator_epoch=11, timestamp=NOW_MS,
        base_offset=50, leader_epoch=2,
    )  # fmt: skip
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.base_offset, header.partition_leader_epoch) == (50, 2)
    (record,) = iter_records(batch, include_control=True)
    assert record.key == (b"\0\0\0\1" if commit else b"\0\0\0\0")
    assert record.value == b"\0\0\0\0\0\x0b"
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    assert read_end_transaction_marker(record.key, record.value) == EndTransactionMarker(kind, 11)


def test_other_types_are_no_markers() -> None:
    assert read_end_transaction_marker(b"\0\0\0\2", b"") is None
    assert read_end_transaction_marker(b"\0\0\x03\xe7", None) is None
    assert control_type_id(b"\0\0\x03\xe7") == 999


def test_a_newer_version_may_be_longer() -> None:
    marker = read_end_transaction_marker(b"\0\1\0\1 more", b"\0\1\0\0\0\5 more")
    assert marker == EndTransactionMarker(ControlRecordType.COMMIT, 5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
    ],
)
def test_what_is_not_a_control_record(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(ApiError) as caught:
        read_end_transaction_marker(key, value)
    assert caught.value.code is ErrorCode.INVALID_RECORD
