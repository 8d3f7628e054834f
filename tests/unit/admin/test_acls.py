"""Entries on the wire and back."""

from __future__ import annotations

import pytest

from kafkapy.admin.acls import create_acls, delete_acls, describe_acls
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from kafkapy.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kafkapy.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafkapy.security.acls import (
    ANY_ENTRY,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
ENTRY = AccessControlEntry("User:a", "*", Operation.READ, Permission.ALLOW)


def scripted(key: ApiKey, answer: object) -> tuple[ScriptedCluster, Cluster]:
    made = ScriptedCluster({ApiKey.METADATA: metadata(), key: answer})
    return made, Cluster("b:1", connector=made.connect)


def test_entries_are_described_by_resource() -> None:
    acl = AclDescription(principal="User:a", host="*", operation=3, permission_type=3)
    resource = DescribeAclsResource(resource_type=2, resource_name="t", pattern_type=3, acls=[acl])
    script, cluster = scripted(ApiKey.DESCRIBE_ACLS, DescribeAclsResponse(resources=[resource]))
    assert describe_acls(cluster, TOPIC) == {TOPIC: [ENTRY]}
    (asked,) = script.requests_of(ApiKey.DESCRIBE_ACLS)
    assert (asked.resource_type_filter, asked.resource_name_filter) == (2, "t")
    assert (asked.principal_filter, asked.operation, asked.permission_type) == (None, 1, 1)
    assert str(TOPIC) == "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"


def test_codes_of_a_later_version_are_unknown() -> None:
    """Apache Kafka 4 has TWO_PHASE_COMMIT (KIP-939). The other entries are shown all the same."""
    rows = [
        AclDescription(principal="User:a", host="*", operation=operation, permission_type=3)
        for operation in (15, 3)
    ]
    resource = DescribeAclsResource(resource_type=9, resource_name="x", pattern_type=3, acls=rows)
    answer = DescribeAclsResponse(resources=[resource])
    found = describe_acls(scripted(ApiKey.DESCRIBE_ACLS, answer)[1])
    [(pattern, entries)] = found.items()
    assert str(pattern) == "ResourcePattern(resourceType=UNKNOWN, name=x, patternType=LITERAL)"
    assert [entry.operation.name for entry in entries] == ["READ", "UNKNOWN"]


def test_a_broker_without_an_authorizer_says_so() -> None:
    refused = DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured"
    )
    with pytest.raises(ApiError, match="No Authorizer is configured"):
        describe_acls(scripted(ApiKey.DESCRIBE_ACLS, refused)[1])


def test_entries_are_created_at_the_controller() -> None:
    script, cluster = scripted(
        ApiKey.CREATE_ACLS, CreateAclsResponse(results=[AclCreationResult()])
    )
    create_acls(cluster, TOPIC, [ENTRY])
    (creation,) = script.requests_of(ApiKey.CREATE_ACLS)[0].creations
    assert (creation.resource_name, creation.principal, creation.operation) == ("t", "User:a", 3)
    refusal = AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no")
    cluster = scripted(ApiKey.CREATE_ACLS, CreateAclsResponse(results=[refusal]))[1]
    with pytest.raises(ApiError, match="no"):
        create_acls(cluster, TOPIC, [ENTRY])


def test_deleting_without_entries_is_deleting_all() -> None:
    matches = [DeleteAclsMatchingAcl(resource_type=2), DeleteAclsMatchingAcl(resource_type=2)]
    answer = DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=matches)])
    script, cluster = scripted(ApiKey.DELETE_ACLS, answer)
    assert delete_acls(cluster, TOPIC, []) == 2
    (asked,) = script.requests_of(ApiKey.DELETE_ACLS)[0].filters
    assert (asked.principal_filter, asked.operation) == (ANY_ENTRY.principal, ANY_ENTRY.operation)


@pytest.mark.parametrize("pattern", [PatternType.PREFIXED, PatternType.MATCH])
def test_a_broker_without_pattern_types_changes_no_entry_of_the_literal_resource(
    pattern: PatternType,
) -> None:
    """Version 0 has no field for the type: every resource in it is literal."""
    topics = TOPIC._replace(pattern=pattern)
    brokers = ScriptedCluster(
        {
            ApiKey.METADATA: metadata(),
            ApiKey.DESCRIBE_ACLS: DescribeAclsResponse(),
            ApiKey.CREATE_ACLS: CreateAclsResponse(results=[AclCreationResult()]),
            ApiKey.DELETE_ACLS: DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()]),
        }
    )
    old = (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
    brokers.versions = {**brokers.versions, **dict.fromkeys(old, (0, 0))}
    cluster = Cluster("b:1", connector=brokers.connect)
    with pytest.raises(ApiError, match="does not support CREATE_ACLS with version in range"):
        create_acls(cluster, topics, [ENTRY])
    with pytest.raises(ApiError, match="does not support DELETE_ACLS with version in range"):
        delete_acls(cluster, topics, [ENTRY])
    with pytest.raises(ApiError, match="does not support DESCRIBE_ACLS with version in range"):
        describe_acls(cluster, topics)
    for kind in (PatternType.LITERAL, PatternType.ANY):
        assert delete_acls(cluster, topics._replace(pattern=kind), [ENTRY]) == 0
    assert describe_acls(cluster) == {}
    create_acls(cluster, TOPIC, [ENTRY])
