"""Topic ids in requests: a known id is its topic, an unknown one is refused, and ACLs are those of
the name.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.messages import offset_commit as commit
from kafkapy.protocol.messages import offset_fetch as fetch
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.requests.turns import ROWS_AT_ONCE
from tests.harness.cores import hot_path
from tests.harness.cores.hot_path import Client
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.batches import patched
from tests.harness.storage.partitions import TOPIC_ID

UNKNOWN = Uuid(bytes([7] * 16))
TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
GROUP = ResourcePattern(ResourceKind.GROUP, "g", PatternType.LITERAL)
NONE, NO_ID = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
Codes = dict[Uuid, int]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    parts.lead()
    parts.coordinate()
    parts.announce("t")
    return parts


def guard(parts: Parts, *rights: tuple[ResourcePattern, Operation]) -> None:
    """An authorizer that allows this alone."""
    parts.authorizer = AclAuthorizer()
    for resource, operation in rights:
        entry = AccessControlEntry("User:ANONYMOUS", "*", operation, Permission.ALLOW)
        parts.authorizer.update(resource, [entry])


def produce(parts: Parts, *ids: Uuid) -> Codes:
    """The error code of each topic."""
    topics = [row for _ in ids for row in hot_path.produce("").topic_data]
    for row, topic_id in zip(topics, ids, strict=True):
        row.topic_id = topic_id
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=topics)
    answer = Client(parts).asks(13, request, ProduceResponse)
    return {each.topic_id: each.partition_responses[0].error_code for each in answer.responses}


def commits(parts: Parts, *ids: Uuid) -> Codes:
    row = commit.OffsetCommitRequestPartition(committed_offset=5, committed_metadata="")
    topics = [commit.OffsetCommitRequestTopic(topic_id=each, partitions=[row]) for each in ids]
    request = commit.OffsetCommitRequest(group_id="g", topics=topics)
    answer = Client(parts).asks(10, request, commit.OffsetCommitResponse)
    return {each.topic_id: each.partitions[0].error_code for each in answer.topics}


def fetched(parts: Parts, ids: Iterable[Uuid] | None) -> tuple[int, dict[Uuid, tuple[int, int]]]:
    """The error of the group; the offset and the error code of each topic."""
    topics = ids and [
        fetch.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids
    ]
    group = fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)  # type: ignore[arg-type]
    request = fetch.OffsetFetchRequest(groups=[group])
    [row] = Client(parts).asks(10, request, fetch.OffsetFetchResponse).groups
    return row.error_code, {
        each.topic_id: (each.partitions[0].committed_offset, each.partitions[0].error_code)
        for each in row.topics
    }


@pytest.mark.parametrize("ask", [produce, commits])
def test_an_unknown_id_is_refused_and_the_others_are_handled(parts: Parts, ask: Any) -> None:
    assert ask(parts, UNKNOWN) == {UNKNOWN: NO_ID}
    assert ask(parts, UNKNOWN, TOPIC_ID, ZERO_UUID) == {
        TOPIC_ID: NONE, UNKNOWN: NO_ID, ZERO_UUID: NO_ID
    }  # fmt: skip
    at_once = 8 if ask is produce else ROWS_AT_ONCE  # of Produce, more are handled in slices
    many = [Uuid(number.to_bytes(16, "big")) for number in range(900, 900 + at_once)]
    assert ask(parts, *many) == dict.fromkeys(many, NO_ID)


@pytest.mark.parametrize("is_hosted", [False, True])
def test_batches_behind_one_of_an_unknown_id_are_refused_too(
    tmp_path: Path, is_hosted: bool
) -> None:
    """LeaderAndIsr and UpdateMetadata come one after the other, and a producer's batches before
    them or between them. The first would come behind the others."""
    parts = Parts(tmp_path)
    client = Client(parts)

    def sent(*sequences: int) -> list[int]:
        codes = []
        for sequence in sequences:
            request = hot_path.produce("")
            [topic] = request.topic_data
            topic.topic_id, [row] = TOPIC_ID, topic.partition_data
            row.records = patched(
                row.records, producer_id=7, producer_epoch=0, base_sequence=sequence
            )
            [answered] = client.asks(13, request, ProduceResponse).responses
            codes.append(answered.partition_responses[0].error_code)
        return codes

    if is_hosted:
        parts.lead()
    assert sent(0, 1) == [NO_ID] * 2
    if not is_hosted:
        parts.lead()
    parts.announce("t")
    assert sent(2, 3) == [NO_ID] * 2
    assert sent(0, 1, 2, 3) == [NONE] * 4
    assert parts.replicas.get("t", 0).log.log_end_offset == 4


@pytest.mark.parametrize(
    ("ask", "rights", "known"),
    [
        (produce, [], NO_TOPIC),
        (produce, [(TOPIC, Operation.WRITE)], NONE),
        (commits, [(GROUP, Operation.READ)], NO_TOPIC),
        (commits, [(GROUP, Operation.READ), (TOPIC, Operation.READ)], NONE),
    ],
)
def test_an_id_is_authorized_by_its_name(parts: Parts, ask: Any, rights: Any, known: int) -> None:
    guard(parts, *rights)
    assert ask(parts, TOPIC_ID, UNKNOWN) == {TOPIC_ID: known, UNKNOWN: NO_ID}
    assert ask(parts, UNKNOWN) == {UNKNOWN: NO_ID}


def test_without_the_group_a_commit_says_nothing_of_ids(parts: Parts) -> None:
    guard(parts, (TOPIC, Operation.READ))
    for ids in ([UNKNOWN], [TOPIC_ID, UNKNOWN]):
        assert commits(parts, *ids) == dict.fromkeys(ids, NO_GROUP)
        assert fetched(parts, ids) == (NO_GROUP, {})


def test_offsets_are_fetched_by_id(parts: Parts) -> None:
    commits(parts, TOPIC_ID)
    assert fetched(parts, [UNKNOWN, TOPIC_ID]) == (NONE, {TOPIC_ID: (5, 0), UNKNOWN: (-1, NO_ID)})
    assert fetched(parts, None) == (NONE, {TOPIC_ID: (5, 0)})
    guard(parts, (GROUP, Operation.DESCRIBE))
    assert fetched(parts, [UNKNOWN, TOPIC_ID]) == (
        NONE, {TOPIC_ID: (-1, NO_TOPIC), UNKNOWN: (-1, NO_ID)}
    )  # fmt: skip
    assert fetched(parts, None) == (NONE, {})


def test_of_all_offsets_those_of_a_topic_without_an_id_are_left_out(parts: Parts) -> None:
    commits(parts, TOPIC_ID)
    parts.announce("t", leader=-2)
    assert fetched(parts, None) == (NONE, {})
