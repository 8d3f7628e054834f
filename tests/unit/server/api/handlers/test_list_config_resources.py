"""ListConfigResources: every type that is asked for, and client metrics only in version 0."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kafkapy.server.api.handlers import list_config_resources
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

CLIENT_METRICS, GROUP = (16, "m"), (32, "g")
BROKERS = [(kind, broker) for kind in (4, 8) for broker in ("1", "2")]


@pytest.mark.parametrize(
    ("version", "kinds", "expected"),
    [
        (0, [], [CLIENT_METRICS]),
        (1, [16], [CLIENT_METRICS]),
        (1, [32, 2], [GROUP, (2, "t")]),
        (1, [], [GROUP, CLIENT_METRICS, *BROKERS, (2, "t")]),
        (1, [16, 64], None),
    ],
)
def test_resources(
    tmp_path: Path, version: int, kinds: list[int], expected: list[tuple[int, str]] | None
) -> None:
    parts = Parts(tmp_path)
    parts.announce("t")
    applier = parts.config_applier()
    applier.apply("client-metrics", "m", {"metrics": "*"})
    applier.apply("groups", "g", {"consumer.session.timeout.ms": "50000"})
    context = request_context(74, version)
    request = ListConfigResourcesRequest(resource_types=kinds)
    handle = list_config_resources.handle(
        parts.configs, AsyncMock(), parts.metadata, context, request
    )
    answer = asyncio.run(handle)
    if expected is None:
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        rows = [(row.resource_type, row.resource_name) for row in answer.config_resources]
        assert sorted(rows) == sorted(expected)
