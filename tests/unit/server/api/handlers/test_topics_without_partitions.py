"""A request has as many topics as fit, none of them with a partition: each counts as work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import FetchOffsetsResult
from kafkapy.coordinator.transactions.messages import PartitionsResult
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages import (
    add_partitions_to_txn,
    alter_replica_log_dirs,
    delete_records,
    fetch,
    list_offsets,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    share_acknowledge,
    share_fetch,
    txn_offset_commit,
    write_txn_markers,
)
from kafkapy.server.api import handlers
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers.fetch import Handler as FetchHandler
from kafkapy.server.api.handlers.produce import Handler as ProduceHandler
from kafkapy.server.api.handlers.share_acknowledge import Handler as ShareAcknowledgeHandler
from kafkapy.server.api.handlers.share_fetch import Handler as ShareFetchHandler
from kafkapy.server.requests.turns import ROW_UNITS
from tests.harness.cores.request_contexts import request_context

MANY = 3_000
NOBODY: Any = Mock()
NO_TOPICS = MetadataCache()
ALL_ALLOWED = Authorization(None)
NO_SHARES: Any = Mock(**{"acknowledge.return_value": ()})

context = partial(request_context, 0)


def many(topic: type) -> list[Any]:
    return [topic() for _ in range(MANY)]


def add_partitions() -> Any:
    topics = many(add_partitions_to_txn.AddPartitionsToTxnTopic)
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(v3_and_below_topics=topics)
    return handlers.add_partitions_to_txn.handle(NOBODY, NO_TOPICS, context(3), request)


def transact_nothing() -> Any:
    transactions = many(add_partitions_to_txn.AddPartitionsToTxnTransaction)
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=transactions)
    service: Any = Mock(run_internal=lambda _, __, answered: answered(PartitionsResult()))
    return handlers.add_partitions_to_txn.handle(service, NO_TOPICS, context(5), request)


def decide_nothing() -> Any:
    markers = many(write_txn_markers.WritableTxnMarker)
    request = write_txn_markers.WriteTxnMarkersRequest(markers=markers)
    return handlers.write_txn_markers.handle(NOBODY, context(1), request)


def move_nothing() -> Any:
    topics = many(alter_replica_log_dirs.AlterReplicaLogDirTopic)
    dirs = [alter_replica_log_dirs.AlterReplicaLogDir(topics=topics)]
    request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=dirs)
    return handlers.alter_replica_log_dirs.handle(NOBODY, context(2), request)


def move_nothing_anywhere() -> Any:
    dirs = many(alter_replica_log_dirs.AlterReplicaLogDir)
    request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=dirs)
    return handlers.alter_replica_log_dirs.handle(NOBODY, context(2), request)


def delete_nothing() -> Any:
    request = delete_records.DeleteRecordsRequest(topics=many(delete_records.DeleteRecordsTopic))
    return handlers.delete_records.handle(NOBODY, NOBODY, context(2), request)


def fetch_nothing() -> Any:
    request = fetch.FetchRequest(topics=many(fetch.FetchTopic))
    return FetchHandler(*[NOBODY] * 5, ALL_ALLOWED, *[NOBODY] * 4).handle(context(12), request)


def list_no_offsets() -> Any:
    request = list_offsets.ListOffsetsRequest(topics=many(list_offsets.ListOffsetsTopic))
    return handlers.list_offsets.handle(NOBODY, NOBODY, context(7), request)


def commit_nothing() -> Any:
    topics = many(offset_commit.OffsetCommitRequestTopic)
    request = offset_commit.OffsetCommitRequest(topics=topics)
    return handlers.offset_commit.handle(NOBODY, NO_TOPICS, context(9), request)


def fetch_no_offsets_of_unknown_ids() -> Any:
    topics = many(offset_fetch.OffsetFetchRequestTopics)
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)]
    return fetch_offsets(10, offset_fetch.OffsetFetchRequest(groups=asked), ErrorCode.NONE)


def fetch_no_offsets_elsewhere() -> Any:
    request = offset_fetch.OffsetFetchRequest(topics=many(offset_fetch.OffsetFetchRequestTopic))
    return fetch_offsets(1, request, ErrorCode.NOT_COORDINATOR)


def fetch_offsets(version: int, request: Any, error: ErrorCode) -> Any:
    groups: Any = Mock(call_now=lambda *_: FetchOffsetsResult(error))
    return handlers.offset_fetch.handle(groups, NO_TOPICS, ALL_ALLOWED, context(version), request)


def find_no_epochs() -> Any:
    topics = many(offset_for_leader_epoch.OffsetForLeaderTopic)
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics)
    return handlers.offset_for_leader_epoch.handle(NOBODY, context(4), request)


def produce_nothing() -> Any:
    request = produce.ProduceRequest(acks=1, topic_data=many(produce.TopicProduceData))
    return ProduceHandler(*[NOBODY] * 6).handle(context(9), request)


def acknowledge_nothing() -> Any:
    topics = many(share_acknowledge.AcknowledgeTopic)
    request = share_acknowledge.ShareAcknowledgeRequest(share_session_epoch=1, topics=topics)
    return ShareAcknowledgeHandler(NO_SHARES, NOBODY).handle(context(1), request)


def share_nothing() -> Any:
    request = share_fetch.ShareFetchRequest(
        share_session_epoch=-1, topics=many(share_fetch.FetchTopic)
    )
    return ShareFetchHandler(NO_SHARES, NOBODY, NOBODY, 1, NOBODY).handle(context(1), request)


def commit_nothing_in_a_transaction() -> Any:
    topics = many(txn_offset_commit.TxnOffsetCommitRequestTopic)
    request = txn_offset_commit.TxnOffsetCommitRequest(topics=topics)
    nothing_to_verify: Any = Mock(writes_to_verify=lambda _: [])
    return handlers.txn_offset_commit.handle(
        NOBODY, NO_TOPICS, nothing_to_verify, context(3), request
    )


@pytest.mark.parametrize(
    ("handle", "units_each"),
    [
        (add_partitions, 1),
        (transact_nothing, 2 + ROW_UNITS),
        (decide_nothing, 1 + ROW_UNITS),
        (move_nothing, 1),
        (move_nothing_anywhere, 1),
        (delete_nothing, 1),
        (fetch_nothing, 1),
        (list_no_offsets, 1),
        (commit_nothing, 3),
        (fetch_no_offsets_of_unknown_ids, 2),
        (fetch_no_offsets_elsewhere, 2),
        (find_no_epochs, 1),
        (produce_nothing, 1),
        (acknowledge_nothing, 1),
        (share_nothing, 1),
        (commit_nothing_in_a_transaction, 3),
    ],
)
def test_each_topic_counts(handle: Callable[[], Any], units_each: int) -> None:
    """A walk that counts nothing is one step of the event loop, however long it is."""
    units = 0
    work = handle()
    while units < units_each * MANY:
        units += next(work)
