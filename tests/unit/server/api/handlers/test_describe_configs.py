"""DescribeConfigs: which keys of a resource are described."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from kafkapy.common.config_def import ResourceType
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkapy.server.api.handlers.describe_configs import Handler
from kafkapy.server.requests.turns import Turns
from tests.harness.cores.request_contexts import request_context


@pytest.mark.parametrize(
    ("keys", "wanted"), [(None, None), ([], None), (["retention.ms"], ["retention.ms"])]
)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ResourceType.TOPIC, "t"),
        (ResourceType.BROKER, "1"),
        (ResourceType.BROKER, ""),
        (ResourceType.CLIENT_METRICS, "all"),
        (ResourceType.GROUP, "g"),
    ],
)
def test_no_keys_are_all_keys(
    kind: ResourceType, name: str, keys: list[str] | None, wanted: list[str] | None
) -> None:
    """An empty list too (`kafka.server.ConfigHelper`)."""
    configs = MagicMock()
    metadata: Any = SimpleNamespace(image=SimpleNamespace(topics={"t": None}))
    handler = Handler(configs, Mock(catch_up=AsyncMock()), metadata, 1, Turns())
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource])
    response = asyncio.run(handler.handle(request_context(32, 4), request))
    assert response.results[0].error_code == 0
    _, args, named = configs.method_calls[0]
    assert [*args, *named.values()][-1] == wanted
