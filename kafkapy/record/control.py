"""Control batches: the transaction markers that a coordinator writes into the log (KIP-98).

Key: `version i16 = 0, type i16`; value of a marker: `version i16 = 0, coordinatorEpoch i32`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import NO_LEADER_EPOCH

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """Kafka's control records by type id; any other id is skipped by readers."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a transaction: COMMIT or ABORT, and the coordinator's epoch."""

    control_type: ControlRecordType
    coordinator_epoch: int


def end_transaction_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The control batch, of one record, that ends the producer's transaction in a partition."""
    from kafkapy.record.builder import RecordData, build_batch  # not needed to read markers

    control_type = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    key = _KEY.pack(_VERSION, control_type)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    return build_batch(
        [RecordData(key, value, timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=leader_epoch,
    )


def control_type_id(key: bytes | None) -> int:
    """The type id in a control record's key. ControlRecordType may not have it.

    Raises:
        ApiError: INVALID_RECORD for a key that is not a control record's.
    """
    if key is None or len(key) < _KEY.size:
        raise ApiError(ErrorCode.INVALID_RECORD, "A control record has no key with a type")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise ApiError(ErrorCode.INVALID_RECORD, f"A control record has the key version {version}")
    return int(type_id)


def read_end_transaction_marker(
    key: bytes | None, value: bytes | None
) -> EndTransactionMarker | None:
    """The marker in a control record; None when the record is of another type.

    Raises:
        ApiError: INVALID_RECORD for a key or value that is not a control record's.
    """
    type_id = control_type_id(key)
    if type_id not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if value is None or len(value) < _VALUE.size:
        raise ApiError(ErrorCode.INVALID_RECORD, "A transaction marker has no coordinator epoch")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise ApiError(ErrorCode.INVALID_RECORD, f"A marker has the value version {version}")
    return EndTransactionMarker(ControlRecordType(type_id), coordinator_epoch)
