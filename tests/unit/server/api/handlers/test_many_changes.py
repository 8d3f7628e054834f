"""More changes in one request than a cluster's metadata should get at once: all are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from kafkapy.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkapy.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kafkapy.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as ChangedResource,
)
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.server.api import handlers
from kafkapy.server.api.handler_support import CHANGES_PER_REQUEST_MAX
from tests.harness.cores.znodes import run

NOBODY: Any = Mock()


def many(row: type) -> list[Any]:
    return [row() for _ in range(CHANGES_PER_REQUEST_MAX + 1)]


def scram() -> Any:
    request = AlterUserScramCredentialsRequest(
        deletions=many(ScramCredentialDeletion)[1:], upsertions=[ScramCredentialUpsertion()]
    )
    return handlers.alter_user_scram_credentials.handle(*[NOBODY] * 5, request)


def acls() -> Any:
    return handlers.create_acls.handle(
        *[NOBODY] * 3, CreateAclsRequest(creations=many(AclCreation))
    )


def quotas() -> Any:
    request = AlterClientQuotasRequest(entries=many(EntryData))
    return run(handlers.alter_client_quotas.handle(*[NOBODY] * 4, request))


def configs() -> Any:
    request = AlterConfigsRequest(resources=many(AlterConfigsResource))
    return run(handlers.alter_configs.handle(*[NOBODY] * 4, request))


def some_configs() -> Any:
    request = IncrementalAlterConfigsRequest(resources=many(ChangedResource))
    return run(handlers.incremental_alter_configs.handle(*[NOBODY] * 5, request))


def topics() -> Any:
    """Only validated, 65,000 topics of one request of 1 MB took 300 MB with their configs."""
    request = CreateTopicsRequest(topics=many(CreatableTopic), validate_only=True)
    return handlers.create_topics.Handler(*[NOBODY] * 6).handle(NOBODY, request)


@pytest.mark.parametrize("ask", [topics, scram, acls, quotas, configs, some_configs])
def test_too_many_changes_are_refused(ask: Callable[[], Any]) -> None:
    """33,000 SCRAM users of one request of 1 MB took 65 MB for good."""
    with pytest.raises(ApiError, match="excessively large") as refused:
        ask()
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
