"""A fetch session keeps partitions, so what may be read is asked again with each of its fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.replication.fetch_session import EVICTION_IDLE_MS, FetchSessionCache
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from tests.harness.cores.hot_path import Client, fetch, produce
from tests.harness.cores.ports import SeededRandom
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID

TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
CLUSTER = ResourcePattern(ResourceKind.CLUSTER, "kafka-cluster", PatternType.LITERAL)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_ID
BY_ID = 13


def may(authorizer: AclAuthorizer, resource: ResourcePattern, *operations: Operation) -> None:
    authorizer.update(
        resource,
        [AccessControlEntry("User:ANONYMOUS", "*", each, Permission.ALLOW) for each in operations],
    )


def prepared(tmp_path: Path, parts: Parts | None = None) -> tuple[AclAuthorizer, Client]:
    parts = parts or Parts(tmp_path)
    parts.lead(isr=(1,))
    authorizer = parts.authorizer = AclAuthorizer()
    client = Client(parts)
    may(authorizer, TOPIC, Operation.WRITE)
    client.sends(9, produce("t", acks=1))()
    return authorizer, client


def row(response: FetchResponse) -> tuple[int, bool]:
    """A fetch's one error code, and whether it has records."""
    [topic] = response.responses
    [partition] = topic.partitions
    return partition.error_code, bool(partition.records)


def test_a_right_that_goes_ends_what_a_session_reads(tmp_path: Path) -> None:
    authorizer, client = prepared(tmp_path)
    may(authorizer, TOPIC, Operation.READ)
    first = client.fetches(fetch(session=(0, 0)))
    assert row(first) == (0, True)
    may(authorizer, TOPIC)
    for epoch in (1, 2):
        assert row(client.fetches(fetch(0, session=(first.session_id, epoch)))) == (REFUSED, False)
    may(authorizer, TOPIC, Operation.READ)
    assert row(client.fetches(fetch(0, session=(first.session_id, 3)))) == (0, True)


def by_id(request: FetchRequest, replica_id: int = -1) -> FetchRequest:
    """The same request with the topic's id instead of its name."""
    request.replica_id = replica_id
    for topic in request.topics:
        topic.topic, topic.topic_id = "", TOPIC_ID
    return request


@pytest.mark.parametrize("replica_id", [-1, -2, 2])
def test_an_id_that_becomes_known_during_a_session_is_authorized_then(
    tmp_path: Path, replica_id: int
) -> None:
    """The exploit: a session that begins with the id of a topic that this broker's metadata does
    not have yet, and goes on when it does."""
    parts = Parts(tmp_path)
    authorizer, client = prepared(tmp_path, parts)
    request = by_id(fetch(session=(0, 0)), replica_id)
    first = client.asks(BY_ID, request, FetchResponse)
    assert row(first)[1] is False
    parts.announce("t")
    for epoch in (1, 2):
        request = by_id(fetch(0, session=(first.session_id, epoch)), replica_id)
        assert row(client.asks(BY_ID, request, FetchResponse)) == (REFUSED, False)
    may(authorizer, TOPIC, Operation.READ)
    may(authorizer, CLUSTER, Operation.CLUSTER_ACTION)
    request = by_id(fetch(0, session=(first.session_id, 3)), replica_id)
    assert row(client.asks(BY_ID, request, FetchResponse))[0] not in (REFUSED, UNKNOWN)


def test_an_id_that_becomes_known_during_a_session_is_read_from_then_on(tmp_path: Path) -> None:
    """A session sends the id once; the row must not stay unknown for the session's life."""
    parts = Parts(tmp_path)
    authorizer, client = prepared(tmp_path, parts)
    may(authorizer, TOPIC, Operation.READ)
    first = client.asks(BY_ID, by_id(fetch(session=(0, 0))), FetchResponse)
    assert row(first) == (UNKNOWN, False)
    parts.announce("t")
    request = by_id(fetch(0, session=(first.session_id, 1)))
    assert row(client.asks(BY_ID, request, FetchResponse)) == (0, True)


def test_a_partition_that_is_named_many_times_is_one_row_and_the_last_counts(
    tmp_path: Path,
) -> None:
    authorizer, client = prepared(tmp_path)
    may(authorizer, TOPIC, Operation.READ)
    request = fetch(offset=7)
    request.topics *= 100
    request.topics.append(fetch().topics[0])
    assert row(client.fetches(request)) == (0, True)


@pytest.mark.parametrize("replica_id", [-1, 2])
def test_an_unknown_id_is_answered_to_consumers_and_not_to_those_who_pose_as_followers(
    tmp_path: Path, replica_id: int
) -> None:
    _, client = prepared(tmp_path)
    request = by_id(fetch(max_wait_ms=10_000), replica_id)
    expected = REFUSED if replica_id >= 0 else UNKNOWN
    assert row(client.asks(BY_ID, request, FetchResponse)) == (expected, False)


@pytest.mark.parametrize("operation", [None, Operation.READ])
def test_a_right_that_goes_while_a_fetch_is_parked_ends_what_it_reads(
    tmp_path: Path, operation: Operation | None
) -> None:
    """A client chooses for how long its fetch is parked: for weeks, if it likes."""
    authorizer, client = prepared(tmp_path)
    may(authorizer, TOPIC, Operation.READ, Operation.WRITE)
    client.transport.sent = b""
    client.sends(12, fetch(offset=1, max_wait_ms=2**31 - 1))()
    assert client.transport.sent == b"", "it is parked"
    may(authorizer, TOPIC, Operation.WRITE, *([operation] if operation else []))
    producer = Client(client.parts)
    producer.sends(9, produce("t", acks=1))()
    answer = decode_response(FetchResponse, 12, client.transport.sent[4:])[1]
    assert row(answer) == ((0, True) if operation else (REFUSED, False))


def test_a_refused_fetch_does_not_wait(tmp_path: Path) -> None:
    _, client = prepared(tmp_path)
    assert row(client.fetches(fetch(max_wait_ms=10_000))) == (REFUSED, False)


def test_a_follower_needs_the_right_of_brokers_and_no_other(tmp_path: Path) -> None:
    authorizer, client = prepared(tmp_path)
    may(authorizer, TOPIC, Operation.READ)
    assert row(client.fetches(fetch(replica_id=2))) == (REFUSED, False)
    may(authorizer, TOPIC)
    may(authorizer, CLUSTER, Operation.CLUSTER_ACTION)
    assert row(client.fetches(fetch(replica_id=2)))[0] != REFUSED


def test_who_only_poses_as_a_follower_evicts_no_session(tmp_path: Path) -> None:
    """Followers' sessions take the place of consumers' where there is no room."""
    parts = Parts(tmp_path)
    parts.fetch_sessions = FetchSessionCache(1, SeededRandom())
    authorizer, client = prepared(tmp_path, parts)
    may(authorizer, TOPIC, Operation.READ)
    first = client.fetches(fetch(session=(0, 0)))
    parts.clock.now_ms += EVICTION_IDLE_MS + 1
    client.fetches(fetch(0, session=(first.session_id, 1)))
    assert client.fetches(fetch(session=(0, 0), replica_id=2)).session_id == 0
    assert row(client.fetches(fetch(0, session=(first.session_id, 2)))) == (0, True)
    may(authorizer, CLUSTER, Operation.CLUSTER_ACTION)
    assert client.fetches(fetch(session=(0, 0), replica_id=2)).session_id > 0
