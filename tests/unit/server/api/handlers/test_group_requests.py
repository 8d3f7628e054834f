"""Requests of groups that are refused before their coordinator sees them, as Apache Kafka does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import DeleteOffsets, DeleteOffsetsResult, SyncGroupResult
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers import (
    offset_commit,
    offset_delete,
    sync_group,
    txn_offset_commit,
)
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def deleted(_: object, request: DeleteOffsets, respond: Any) -> Any:
    return respond(DeleteOffsetsResult(errors=dict.fromkeys(request.partitions, NONE)))


@pytest.mark.parametrize(
    ("wanted", "codes"),
    [
        ([("t", 0), ("t", 1)], {("t", 0): NONE, ("t", 1): UNKNOWN}),
        ([("nowhere", 0)], {("nowhere", 0): UNKNOWN}),
    ],
)
def test_only_offsets_of_partitions_that_exist_are_deleted(
    tmp_path: Path, wanted: list[TopicPartition], codes: dict[TopicPartition, ErrorCode]
) -> None:
    parts = Parts(tmp_path)
    parts.announce("t")
    groups = Mock()
    groups.call = Mock(side_effect=deleted)
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in wanted
        ],
    )
    response: Any = run_now(
        offset_delete.handle(
            groups, parts.metadata, Authorization(None), request_context(47, 0), request
        )
    )
    rows = {
        (t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions
    }
    assert (response.error_code, rows) == (NONE, codes)
    assert groups.call.called  # it knows whether there is such a group


@pytest.mark.parametrize(
    ("version", "names", "code"),
    [
        (5, ("consumer", "range"), NONE),
        (5, ("consumer", None), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (5, (None, "range"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (4, (None, None), NONE),
    ],
)
def test_a_sync_names_its_protocol_since_version_5(
    version: int, names: tuple[str | None, str | None], code: ErrorCode
) -> None:
    groups = Mock(call=lambda method, request, respond: respond(SyncGroupResult(NONE)))
    request = SyncGroupRequest(group_id="g", protocol_type=names[0], protocol_name=names[1])
    response: Any = sync_group.handle(groups, request_context(14, version), request)
    assert response.error_code == code


@pytest.mark.parametrize(
    ("handle", "request_class"),
    [
        (offset_commit.handle, OffsetCommitRequest),
        (
            lambda groups, *rest: txn_offset_commit.handle(
                groups, rest[0], Mock(writes_to_verify=lambda _: []), *rest[1:]
            ),
            TxnOffsetCommitRequest,
        ),
    ],
)
def test_a_commit_of_nothing_is_none_to_the_coordinator(handle: Any, request_class: Any) -> None:
    """It would begin a group without members and offsets, which tools list."""
    groups = Mock()
    request = request_class(group_id="g", topics=[])
    response: Any = run_now(handle(groups, Mock(), request_context(8, 3), request))
    assert response.topics == []
    assert not groups.call.called
