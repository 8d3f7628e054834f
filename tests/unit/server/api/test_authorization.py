"""Authorization: without an authorizer all is allowed; refusals name the needed operation."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorized_operations import TOPIC_OPERATIONS

CONTEXT: Any = SimpleNamespace(
    principal="User:a", client_host="h", header=SimpleNamespace(api_key=0)
)


def allowing(*grants: tuple[ResourceKind, str, Operation]) -> Authorization:
    authorizer = AclAuthorizer()
    for kind, name, operation in grants:
        entry = AccessControlEntry("User:a", "h", operation, Permission.ALLOW)
        authorizer.update(ResourcePattern(kind, name, PatternType.LITERAL), [entry])
    return Authorization(authorizer)


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    anybody = Authorization(None)
    assert anybody.is_allowed(CONTEXT, Operation.ALTER, ResourceKind.CLUSTER)
    assert (
        anybody.allowed_operations(CONTEXT, TOPIC_OPERATIONS, ResourceKind.TOPIC, "t")
        == TOPIC_OPERATIONS
    )
    anybody.require(CONTEXT, Operation.ALTER, ResourceKind.CLUSTER)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ResourceKind.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceKind.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceKind.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceKind.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_each_kind_has_its_refusal_and_a_line_in_the_log(
    kind: ResourceKind, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(ApiError, match="User:a is not authorized: WRITE on n is needed") as refusal:
        allowing().require(CONTEXT, Operation.WRITE, kind, "n")
    assert refusal.value.code is code
    assert "Principal = User:a is Denied operation = Write from host = h" in caplog.text


def test_the_operations_that_are_left() -> None:
    reader = allowing((ResourceKind.TOPIC, "t", Operation.READ))
    bits = reader.allowed_operations(CONTEXT, TOPIC_OPERATIONS, ResourceKind.TOPIC, "t")
    assert bits == 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert reader.allowed_operations(CONTEXT, TOPIC_OPERATIONS, ResourceKind.TOPIC, "other") == 0


def test_a_topic_is_made_by_who_may_create_it_or_any() -> None:
    assert allowing((ResourceKind.TOPIC, "t", Operation.CREATE)).may_create_topic(CONTEXT, "t")
    assert allowing((ResourceKind.CLUSTER, "kafka-cluster", Operation.CREATE)).may_create_topic(
        CONTEXT, "t"
    )
    assert not allowing((ResourceKind.TOPIC, "t", Operation.CREATE)).may_create_topic(CONTEXT, "u")


def test_a_name_cannot_look_like_a_line_of_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(ApiError):
        allowing().require(
            CONTEXT, Operation.READ, ResourceKind.TOPIC, "a\nPrincipal = User:b is Allowed"
        )
    assert caplog.records[-1].getMessage().count("\n") == 0
