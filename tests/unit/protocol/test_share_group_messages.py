"""Messages of share groups as Kafka 4.3 writes them, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.compile import decode
from kafkapy.protocol.messages import read_share_group_state_summary as summary
from kafkapy.protocol.messages import share_acknowledge as acknowledge
from kafkapy.protocol.messages import share_fetch as fetch
from kafkapy.protocol.messages import share_group_heartbeat as heartbeat
from kafkapy.protocol.messages import write_share_group_state as write
from tests.harness.protocol.encoding import encode_bytes

ID = Uuid(bytes(15) + b"\1")
_ID = "00000000000000000000000000000001"
FETCH = fetch.ShareFetchRequest(
    group_id="g",
    member_id="m",
    share_session_epoch=1,
    max_wait_ms=2,
    min_bytes=3,
    max_bytes=4,
    max_records=5,
    batch_size=6,
    topics=[
        fetch.FetchTopic(
            topic_id=ID,
            partitions=[
                fetch.FetchPartition(
                    acknowledgement_batches=[
                        fetch.AcknowledgementBatch(
                            first_offset=7, last_offset=8, acknowledge_types=[1]
                        )
                    ]
                )
            ],
        )
    ],
)
_BATCH = "0000000000000007 0000000000000008 02 01 00"
_FETCH = "0267 026d 00000001 00000002 00000003 00000004 00000005 00000006"
_TOPICS = f"02 {_ID} 02 00000000 02 {_BATCH} 00 00"
FETCHED = fetch.ShareFetchResponse(
    acquisition_lock_timeout_ms=1,
    responses=[
        fetch.ShareFetchableTopicResponse(
            topic_id=ID,
            partitions=[
                fetch.PartitionData(
                    records=b"r",
                    acquired_records=[
                        fetch.AcquiredRecords(first_offset=7, last_offset=8, delivery_count=2)
                    ],
                )
            ],
        )
    ],
)
_ACQUIRED = "0000000000000007 0000000000000008 0002 00"
_PARTITION = f"00000000 0000 00 0000 00 00000000 00000000 00 0272 02 {_ACQUIRED} 00"
WRITE = write.WriteShareGroupStateRequest(
    group_id="g",
    topics=[
        write.WriteStateData(
            topic_id=ID,
            partitions=[
                write.PartitionData(
                    state_epoch=1,
                    leader_epoch=2,
                    start_offset=3,
                    delivery_complete_count=4,
                    state_batches=[
                        write.StateBatch(
                            first_offset=5, last_offset=6, delivery_state=2, delivery_count=1
                        )
                    ],
                )
            ],
        )
    ],
)
_WRITE = f"0267 02 {_ID} 02 00000000 00000001 00000002 0000000000000003"
_STATE = "02 0000000000000005 0000000000000006 02 0001 00 00 00 00"


@pytest.mark.parametrize(
    ("version", "message", "expected"),
    [
        (
            1,
            heartbeat.ShareGroupHeartbeatRequest(
                group_id="g", member_id="m", subscribed_topic_names=["t"]
            ),
            "0267 026d 00000000 00 02 0274 00",
        ),
        (1, FETCH, f"{_FETCH} {_TOPICS} 01 00"),
        (2, FETCH, f"{_FETCH} 00 00 {_TOPICS} 01 00"),
        (1, FETCHED, f"00000000 0000 00 00000001 02 {_ID} 02 {_PARTITION} 00 01 00"),
        (
            2,
            acknowledge.ShareAcknowledgeRequest(group_id="g", member_id="m", is_renew_ack=True),
            "0267 026d 00000000 01 01 00",
        ),
        (
            2,
            acknowledge.ShareAcknowledgeResponse(acquisition_lock_timeout_ms=1),
            "00000000 0000 00 00000001 01 01 00",
        ),
        (0, WRITE, f"{_WRITE} {_STATE}"),
        (1, WRITE, f"{_WRITE} 00000004 {_STATE}"),
        (
            1,
            summary.ReadShareGroupStateSummaryResponse(
                results=[
                    summary.ReadStateSummaryResult(
                        topic_id=ID, partitions=[summary.PartitionResult(start_offset=1)]
                    )
                ]
            ),
            f"02 {_ID} 02 00000000 0000 00 00000000 00000000 0000000000000001 ffffffff 00 00 00",
        ),
    ],
)
def test_bytes(version: int, message: Any, expected: str) -> None:
    data = bytes.fromhex(expected)
    assert bytes(encode_bytes(message, version)).hex() == data.hex()
    decoded, _ = decode(type(message), version, memoryview(data))
    assert encode_bytes(decoded, version) == encode_bytes(message, version)
