"""A fetch session keeps partitions, so what may be read is asked again with each of its fetches."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.messages.fetch import FetchResponse
from tests.support.hot_path import Client, fetch, produce
from tests.support.server_parts import Parts

TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
CLUSTER = ResourcePattern(ResourceKind.CLUSTER, "kafka-cluster", PatternType.LITERAL)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def may(authorizer: AclAuthorizer, resource: ResourcePattern, *operations: Operation) -> None:
    authorizer.update(
        resource,
        [AccessControlEntry("User:ANONYMOUS", "*", each, Permission.ALLOW) for each in operations],
    )


def prepared(tmp_path: Path) -> tuple[AclAuthorizer, Client]:
    parts = Parts(tmp_path)
    parts.lead(isr=(1,))
    authorizer = parts.services.authorizer = AclAuthorizer()
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
