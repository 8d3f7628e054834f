"""Resources and keys that a request to alter configs names more than once: nothing of them is
changed, because only one of their changes could count."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import alter_configs, incremental_alter_configs
from kafkapy.server.admin.broker_loggers import BrokerLoggers
from kafkapy.server.api import handlers
from kafkapy.server.requests.turns import SliceScheduler
from tests.harness.cores.znodes import run

TOPIC = ResourceType.TOPIC
TWICE = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
TWO_KEYS = (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def answered(
    handler: Any, request: Any, *loggers: BrokerLoggers
) -> tuple[dict[str, tuple[int, str | None]], list[str]]:
    """Code and message of each resource, and the resources that are altered."""
    admin = AsyncMock()
    handled = handler.handle(admin, *loggers, AsyncMock(), SliceScheduler(), None, request)
    rows = run(handled).responses
    calls = [*admin.change.await_args_list, *admin.replace.await_args_list]
    found = {row.resource_name: (row.error_code, row.error_message) for row in rows}
    return found, [call.args[1] for call in calls]


def test_some_configs() -> None:
    resource = incremental_alter_configs.AlterConfigsResource
    resources = [resource(resource_type=TOPIC, resource_name=name) for name in "aba"]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    found, altered = answered(handlers.incremental_alter_configs, request, BrokerLoggers(1))
    assert found == {"a": TWICE, "b": (0, None)}
    assert altered == ["b"]


def test_all_configs() -> None:
    resource, config = alter_configs.AlterConfigsResource, alter_configs.AlterableConfig
    resources = [resource(resource_type=TOPIC, resource_name=name) for name in "aba"]
    same = [config(name="retention.ms", value=value) for value in "12"]
    resources.append(resource(resource_type=TOPIC, resource_name="c", configs=same))
    request = alter_configs.AlterConfigsRequest(resources=resources)
    found, altered = answered(handlers.alter_configs, request)
    assert found == {"a": TWICE, "b": (0, None), "c": TWO_KEYS}
    assert altered == ["b"]
