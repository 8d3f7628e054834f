"""Every API that is served is handled, and by one area."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.server.api import handler_table
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import Pending
from tests.harness.cores.areas import area
from tests.harness.cores.request_contexts import request_context

AREAS = (
    handler_table.logs,
    handler_table.groups,
    handler_table.share_members,
    handler_table.share_offsets,
    handler_table.transactions,
    handler_table.cluster,
    handler_table.topics,
    handler_table.configs,
    handler_table.acls,
    handler_table.quotas,
    handler_table.scram,
    handler_table.delegation_tokens,
    handler_table.controller,
    handler_table.control_requests,
    handler_table.telemetry,
)


def test_each_api_is_of_one_area() -> None:
    found = Counter(key for build in AREAS for key in area(build))
    found.update((ApiKey.PRODUCE, ApiKey.FETCH))
    assert found == Counter(list(SERVED))


@pytest.mark.parametrize(
    ("key", "is_dropped"),
    [
        (ApiKey.DESCRIBE_CONFIGS, True),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, True),
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, True),
        (ApiKey.ALTER_CONFIGS, False),
        (ApiKey.CREATE_TOPICS, False),
    ],
)
def test_nothing_is_read_on_for_a_client_that_left_and_no_change_is_left_half_done(
    key: ApiKey, is_dropped: bool
) -> None:
    """An admin client gives up after 30 s, and asks again: each time the work would pile up."""
    ended: list[bool] = []

    async def handler(context: Any, request: Any) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
        ended.append(True)

    async def scenario() -> None:
        tasks = BackgroundTasks()
        handle = handler_table.in_background(tasks, {key: handler})[key]
        pending = handle(request_context(key, 0), SERVED[key].request_class())
        assert isinstance(pending, Pending)
        await asyncio.sleep(0)
        pending.abandon()
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert ended == ([] if is_dropped else [True])
