"""Records of `__share_group_state`, byte for byte."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import DeliveryState, SharePartitionKey, StateBatch
from kafkapy.coordinator.shares.records import (
    RecordType,
    ShareState,
    ShareUpdate,
    encode_key,
    read_key,
    read_snapshot,
    read_update,
    snapshot_value,
    update_value,
)
from tests.harness.cores.consumer_shell import topic_id

KEY = SharePartitionKey("g", topic_id(1), 2)
_KEY = "0001 67 00000000000000000000000000000001 00000002"
BATCH = StateBatch(5, 6, DeliveryState.ACKNOWLEDGED, 3)
_BATCHES = "02 0000000000000005 0000000000000006 02 0003 00"
STATE = ShareState(1, 2, 3, 4, 7, 8, 9, (BATCH,))
_STATE = (
    f"0000 00000001 00000002 00000003 0000000000000004 0000000000000008 0000000000000009 {_BATCHES}"
)
UPDATE = ShareUpdate(1, 3, -1, 7, (BATCH,))
_UPDATE = f"0000 00000001 00000003 ffffffffffffffff {_BATCHES}"
_COUNT = "01 00 04 00000007"


def test_keys() -> None:
    for kind in RecordType:
        data = bytes.fromhex(f"000{kind:d} {_KEY}")
        assert encode_key(kind, KEY) == data
        assert read_key(data) == (kind, KEY)
    assert read_key(bytes.fromhex(f"0002 {_KEY}")) is None


def test_values() -> None:
    assert snapshot_value(STATE) == bytes.fromhex(f"{_STATE} {_COUNT}")
    assert read_snapshot(bytes.fromhex(f"{_STATE} {_COUNT}")) == STATE
    assert update_value(UPDATE) == bytes.fromhex(f"{_UPDATE} {_COUNT}")
    assert read_update(bytes.fromhex(f"{_UPDATE} {_COUNT}")) == UPDATE


def test_values_of_kafka_4_1_have_no_count() -> None:
    state, update = (
        each._replace(delivery_complete_count=-1)  # type: ignore[attr-defined]
        for each in (STATE, UPDATE)
    )
    assert snapshot_value(state) == bytes.fromhex(f"{_STATE} 00")
    assert read_snapshot(bytes.fromhex(f"{_STATE} 00")) == state
    assert read_update(bytes.fromhex(f"{_UPDATE} 00")) == update


@pytest.mark.parametrize("data", ["0001", f"{_STATE}", _STATE.replace(" 02 0003", " 03 0003")])
def test_unreadable_values(data: str) -> None:
    with pytest.raises(ApiError) as refusal:
        read_snapshot(bytes.fromhex(data))
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE
