"""WriteTxnMarkers (key 27): a coordinator sends transaction markers to leaders (KIP-98).

`transaction_version` is kafkapy's own field. It has the meaning that it has in version 2 of the
request (KIP-1228). Other brokers skip it.
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    field,
)


class WritableTxnMarkerTopic(Struct):
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


class WritableTxnMarker(Struct):
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    transaction_result: bool = field(BOOL)
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = field(INT32)
    transaction_version: int = field(INT8, "1+", tag=10_000)


class WriteTxnMarkersRequest(Message, api=ApiKey.WRITE_TXN_MARKERS):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(STRING)
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(INT64)
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, api=ApiKey.WRITE_TXN_MARKERS):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
